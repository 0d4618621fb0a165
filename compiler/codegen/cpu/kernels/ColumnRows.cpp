//===- ColumnRows.cpp - Reductions that keep the last axis ----------------===//
//
// A task reduces a block of adjacent columns. The accumulators lie in the
// worker's scratch, one a column, so that the inner loop runs along memory.
// What the columns of a group have accumulated goes to the group's total every
// so many elements, as rounding errors grow with the steps of one sum.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/RowEmitter.h"
#include "dialects/graph/ops/Scalar.h"
#include "runtime/base/Alignment.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

/// Elements of a column between additions to its group's total.
static constexpr int64_t kPartLength = 256;

ColumnRowEmitter::ColumnRowEmitter(KernelFrame &frame, const RowPlan &plan)
    : RowEmitter(frame, plan) {}

void ColumnRowEmitter::emitTask(OpBuilder &b, Value task) {
  Value blocks = size(b, plan.getColumns().ceilDiv(plan.columns));
  Extents extents = plan.getRowExtents();
  SmallVector<Value> counts = sizes(b, extents);
  counts.push_back(blocks);
  row = emitDelinearize(b, loc, task, counts);
  Value width = emitIndex(b, loc, plan.columns);
  firstColumn = emitMul(b, loc, row.pop_back_val(), width);
  lastColumn = emitMin(b, loc, emitAdd(b, loc, firstColumn, width),
                       size(b, plan.getColumns()));
  for (const KeptValue &kept : plan.kept)
    keptBuffers.push_back(getScratch(
        b, kept.offset, getScalarType(getElementTypeOrSelf(kept.value))));
  for (auto [reduction, offset] :
       llvm::zip_equal(plan.reductions, plan.accumulatorOffsets)) {
    Type type =
        getScalarType(getElementTypeOrSelf(reduction.op->getOperand(0)));
    accumulators.push_back(getScratch(b, offset, type));
    int64_t bytes = alignTensor(plan.columns * getStorageBytes(type));
    accumulatorIndices.push_back(getScratch(b, offset + bytes, b.getI64Type()));
    if (plan.hasGroups())
      groupTotals.push_back(getScratch(b, offset + bytes, type));
  }
  for (const RowValue &known : plan.rowValues)
    rowBuffers.push_back(getScratch(
        b, known.offset, getScalarType(getElementTypeOrSelf(known.value))));
  for (unsigned stage = 0; stage < plan.stageCount; ++stage) {
    emitInit(b, stage, accumulators);
    emitInit(b, stage, groupTotals);
    writeRowValues(b, stage);
    walk(b, {}, stage);
    spreadTotals(b, stage);
  }
  writeRowValues(b, plan.stageCount);
  if (!plan.wholeResults.empty())
    walk(b, {}, plan.stageCount);
  forGroups(b, [&](OpBuilder &b, ValueRange kept, Value first) {
    readRows(b, plan.stageCount, kept, first);
    storeResults(b, plan.rowResults, kept);
  });
}

void ColumnRowEmitter::forGroups(OpBuilder &b, GroupBody body) {
  Value size = emitIndex(b, loc, plan.groupSize);
  auto countGroups = [&](Value columns) -> Value {
    return plan.hasGroups() ? b.create<arith::DivUIOp>(loc, columns, size)
                            : columns;
  };
  Value first = countGroups(firstColumn);
  Value count = countGroups(emitSub(b, loc, lastColumn, firstColumn));
  emitLoop(b, loc, emitIndex(b, loc, 0), count, 1,
           [&](OpBuilder &b, Value group) {
             Indices kept(row);
             kept.push_back(emitAdd(b, loc, first, group));
             body(b, kept, emitMul(b, loc, group, size));
           });
}

void ColumnRowEmitter::forColumns(OpBuilder &b, ColumnBody body) {
  Value count = emitSub(b, loc, lastColumn, firstColumn);
  emitLoop(b, loc, emitIndex(b, loc, 0), count, 1,
           [&](OpBuilder &b, Value column) {
             Indices kept(row), inGroup;
             Value place = emitAdd(b, loc, firstColumn, column);
             if (plan.hasGroups()) {
               Value size = emitIndex(b, loc, plan.groupSize);
               inGroup.push_back(b.create<arith::RemUIOp>(loc, place, size));
               place = b.create<arith::DivUIOp>(loc, place, size);
             }
             kept.push_back(place);
             body(b, kept, inGroup, column);
           });
}

void ColumnRowEmitter::emitInit(OpBuilder &b, unsigned stage,
                                ArrayRef<Buffer> buffers) {
  if (buffers.empty())
    return;
  forColumns(b, [&](OpBuilder &b, ValueRange, ValueRange, Value column) {
    for (auto [i, reduction] : llvm::enumerate(plan.reductions)) {
      if (reduction.stage != stage)
        continue;
      if (auto op = dyn_cast<ReductionOpInterface>(reduction.op)) {
        buffers[i].store(b, loc, op.emitInit(b, loc), column);
        continue;
      }
      Value worst = emitWorst(b, cast<ArgReduceOp>(reduction.op));
      buffers[i].store(b, loc, worst, column);
      accumulatorIndices[i].store(
          b, loc, b.create<arith::ConstantIntOp>(loc, 0, 64), column);
    }
  });
}

void ColumnRowEmitter::writeRowValues(OpBuilder &b, unsigned stage) {
  auto isOfStage = [&](const RowValue &known) { return known.stage == stage; };
  if (llvm::none_of(plan.rowValues, isOfStage))
    return;
  forColumns(b, [&](OpBuilder &b, ValueRange kept, ValueRange, Value column) {
    readRows(b, stage, kept, column);
    for (auto [known, buffer] : llvm::zip_equal(plan.rowValues, rowBuffers))
      if (known.stage == stage)
        buffer.store(b, loc, frame.elements.element(b, loc, known.value, kept),
                     column);
  });
}

void ColumnRowEmitter::walk(OpBuilder &b, Indices reduced, unsigned stage) {
  Extents extents = plan.getReducedExtents();
  if (reduced.size() == extents.size())
    return emitElements(b, reduced, stage);
  Value extent = size(b, extents[reduced.size()]);
  auto walkFurther = [&](OpBuilder &b, Value i) {
    Indices inner(reduced);
    inner.push_back(i);
    walk(b, inner, stage);
  };
  Value zero = emitIndex(b, loc, 0);
  bool isLast = reduced.size() + 1 == extents.size();
  if (!isLast || !plan.hasGroups() || stage == plan.stageCount)
    return emitLoop(b, loc, zero, extent, 1, walkFurther);
  emitLoop(b, loc, zero, extent, kPartLength, [&](OpBuilder &b, Value from) {
    Value end = emitAdd(b, loc, from, emitIndex(b, loc, kPartLength));
    emitLoop(b, loc, from, emitMin(b, loc, end, extent), 1, walkFurther);
    addToTotals(b, stage);
  });
}

void ColumnRowEmitter::addToTotals(OpBuilder &b, unsigned stage) {
  forGroups(b, [&](OpBuilder &b, ValueRange, Value first) {
    for (auto [i, reduction] : llvm::enumerate(plan.reductions)) {
      if (reduction.stage != stage)
        continue;
      auto op = cast<ReductionOpInterface>(reduction.op);
      Value part = op.emitInit(b, loc);
      for (int64_t j = 0; j < plan.groupSize; ++j) {
        Value column = emitAdd(b, loc, first, emitIndex(b, loc, j));
        Value element = accumulators[i].load(b, loc, column);
        part = op.emitCombine(b, loc, part, element);
        accumulators[i].store(b, loc, op.emitInit(b, loc), column);
      }
      Value total = groupTotals[i].load(b, loc, first);
      groupTotals[i].store(b, loc, op.emitCombine(b, loc, total, part), first);
    }
  });
}

void ColumnRowEmitter::spreadTotals(OpBuilder &b, unsigned stage) {
  if (!plan.hasGroups())
    return;
  forGroups(b, [&](OpBuilder &b, ValueRange, Value first) {
    for (auto [i, reduction] : llvm::enumerate(plan.reductions)) {
      if (reduction.stage != stage)
        continue;
      Value total = groupTotals[i].load(b, loc, first);
      for (int64_t j = 1; j < plan.groupSize; ++j)
        groupTotals[i].store(b, loc, total,
                             emitAdd(b, loc, first, emitIndex(b, loc, j)));
    }
  });
}

void ColumnRowEmitter::emitElements(OpBuilder &b, ValueRange reduced,
                                    unsigned stage) {
  Value start = emitMul(b, loc, getReducedPosition(b, reduced),
                        emitIndex(b, loc, plan.columns));
  forColumns(
      b, [&](OpBuilder &b, ValueRange kept, ValueRange inGroup, Value column) {
        Indices inRow(reduced);
        llvm::append_range(inRow, inGroup);
        Indices at = getSpaceIndices(kept, inRow);
        Value position = emitAdd(b, loc, start, column);
        readRows(b, stage, kept, column);
        readRowValues(b, stage, kept, column);
        readKept(b, stage, at, position);
        writeKept(b, stage, at, position);
        for (auto [i, reduction] : llvm::enumerate(plan.reductions))
          if (reduction.stage == stage)
            accumulate(b, i, at, reduced, column);
        if (stage == plan.stageCount)
          storeResults(b, plan.wholeResults, at);
      });
}

void ColumnRowEmitter::accumulate(OpBuilder &b, unsigned reduction,
                                  ValueRange at, ValueRange reduced,
                                  Value column) {
  Operation *op = plan.reductions[reduction].op;
  const Buffer &buffer = accumulators[reduction];
  Value x = frame.elements.element(b, loc, op->getOperand(0), at);
  Value old = buffer.load(b, loc, column);
  if (auto combining = dyn_cast<ReductionOpInterface>(op))
    return buffer.store(b, loc, combining.emitCombine(b, loc, old, x), column);
  const Buffer &indices = accumulatorIndices[reduction];
  Value index =
      b.create<arith::IndexCastOp>(loc, b.getI64Type(), reduced.back());
  auto [value, place] = emitBetter(b, cast<ArgReduceOp>(op), old,
                                   indices.load(b, loc, column), x, index);
  buffer.store(b, loc, value, column);
  indices.store(b, loc, place, column);
}

void ColumnRowEmitter::readRows(OpBuilder &b, unsigned stage, ValueRange at,
                                Value column) {
  ArrayRef<Buffer> totals = plan.hasGroups() ? groupTotals : accumulators;
  for (auto [i, reduction] : llvm::enumerate(plan.reductions)) {
    if (reduction.stage >= stage)
      continue;
    Value result = reduction.op->getResult(0);
    if (isa<ArgReduceOp>(reduction.op)) {
      frame.elements.define(result, at,
                            accumulatorIndices[i].load(b, loc, column));
      continue;
    }
    Value scalar = totals[i].load(b, loc, column);
    frame.elements.define(
        result, at, emitRounding(b, loc, scalar, getElementTypeOrSelf(result)));
  }
}

void ColumnRowEmitter::readRowValues(OpBuilder &b, unsigned stage,
                                     ValueRange at, Value column) {
  for (auto [known, buffer] : llvm::zip_equal(plan.rowValues, rowBuffers))
    if (known.stage <= stage)
      frame.elements.define(known.value, at, buffer.load(b, loc, column));
}

} // namespace tcc::cpu
