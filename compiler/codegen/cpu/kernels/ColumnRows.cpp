//===- ColumnRows.cpp - Reductions that keep the last axis ----------------===//
//
// A task reduces a block of adjacent columns. The accumulators lie in the
// worker's scratch, one a column, so that the inner loop runs along memory.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/RowEmitter.h"
#include "dialects/graph/ops/Scalar.h"
#include "runtime/base/Alignment.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

ColumnRowEmitter::ColumnRowEmitter(KernelFrame &frame, const RowPlan &plan)
    : RowEmitter(frame, plan) {}

void ColumnRowEmitter::emitTask(OpBuilder &b, Value task) {
  Value blocks = size(b, plan.space.back().ceilDiv(plan.columns));
  Extents extents = plan.getRowExtents();
  SmallVector<Value> counts = sizes(b, extents);
  counts.push_back(blocks);
  row = emitDelinearize(b, loc, task, counts);
  Value width = emitIndex(b, loc, plan.columns);
  firstColumn = emitMul(b, loc, row.pop_back_val(), width);
  lastColumn = emitMin(b, loc, emitAdd(b, loc, firstColumn, width),
                       size(b, plan.space.back()));
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
  }
  for (unsigned stage = 0; stage < plan.stageCount; ++stage) {
    emitInit(b, stage);
    walk(b, {}, stage);
  }
  if (!plan.wholeResults.empty())
    walk(b, {}, plan.stageCount);
  forColumns(b, [&](OpBuilder &b, ValueRange at, Value column) {
    readAccumulators(b, plan.stageCount, at, column);
    storeResults(b, plan.rowResults, at);
  });
}

void ColumnRowEmitter::forColumns(OpBuilder &b, ColumnBody body) {
  Value count = emitSub(b, loc, lastColumn, firstColumn);
  emitLoop(b, loc, emitIndex(b, loc, 0), count, 1,
           [&](OpBuilder &b, Value column) {
             Indices at(row);
             at.push_back(emitAdd(b, loc, firstColumn, column));
             body(b, at, column);
           });
}

void ColumnRowEmitter::emitInit(OpBuilder &b, unsigned stage) {
  forColumns(b, [&](OpBuilder &b, ValueRange, Value column) {
    for (auto [i, reduction] : llvm::enumerate(plan.reductions)) {
      if (reduction.stage != stage)
        continue;
      if (auto op = dyn_cast<ReductionOpInterface>(reduction.op)) {
        accumulators[i].store(b, loc, op.emitInit(b, loc), column);
        continue;
      }
      Value worst = emitWorst(b, cast<ArgReduceOp>(reduction.op));
      accumulators[i].store(b, loc, worst, column);
      accumulatorIndices[i].store(
          b, loc, b.create<arith::ConstantIntOp>(loc, 0, 64), column);
    }
  });
}

void ColumnRowEmitter::walk(OpBuilder &b, Indices reduced, unsigned stage) {
  Extents extents = plan.getReducedExtents();
  if (reduced.size() == extents.size())
    return emitElements(b, reduced, stage);
  Value extent = size(b, extents[reduced.size()]);
  emitLoop(b, loc, emitIndex(b, loc, 0), extent, 1, [&](OpBuilder &b, Value i) {
    Indices inner(reduced);
    inner.push_back(i);
    walk(b, inner, stage);
  });
}

void ColumnRowEmitter::emitElements(OpBuilder &b, ValueRange reduced,
                                    unsigned stage) {
  Value start = emitMul(b, loc, getReducedPosition(b, reduced),
                        emitIndex(b, loc, plan.columns));
  forColumns(b, [&](OpBuilder &b, ValueRange kept, Value column) {
    Indices at = getSpaceIndices(kept, reduced);
    Value position = emitAdd(b, loc, start, column);
    readAccumulators(b, stage, kept, column);
    readKept(b, stage, at, position);
    writeKept(b, stage, at, position);
    for (auto [i, reduction] : llvm::enumerate(plan.reductions))
      if (reduction.stage == stage)
        accumulate(b, i, at, reduced, column);
    if (stage < plan.stageCount)
      return;
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

void ColumnRowEmitter::readAccumulators(OpBuilder &b, unsigned stage,
                                        ValueRange at, Value column) {
  for (auto [i, reduction] : llvm::enumerate(plan.reductions)) {
    if (reduction.stage >= stage)
      continue;
    Value result = reduction.op->getResult(0);
    if (isa<ArgReduceOp>(reduction.op)) {
      frame.elements.define(result, at,
                            accumulatorIndices[i].load(b, loc, column));
      continue;
    }
    Value scalar = accumulators[i].load(b, loc, column);
    frame.elements.define(
        result, at, emitRounding(b, loc, scalar, getElementTypeOrSelf(result)));
  }
}

} // namespace tcc::cpu
