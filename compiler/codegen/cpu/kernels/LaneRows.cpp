//===- LaneRows.cpp - Reductions over the last axis -----------------------===//
//
// Elements are computed 64 at a time into a temporary that LLVM turns into
// registers; four vectors of 16 lanes combine them. The accumulators of several
// reductions are one list: four vectors a reduction.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/RowEmitter.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

static constexpr int64_t kVectorLanes = 16;
static constexpr int64_t kVectors = kLanes / kVectorLanes;

LaneRowEmitter::LaneRowEmitter(KernelFrame &frame, const RowPlan &plan)
    : RowEmitter(frame, plan) {}

void LaneRowEmitter::emitTask(OpBuilder &b, Value task) {
  Value count = emitIndex(b, loc, plan.rowsPerTask);
  Value from = emitMul(b, loc, task, count);
  Value rows = size(b, getNumElements(plan.getRowExtents(), b.getContext()));
  Value to = emitMin(b, loc, emitAdd(b, loc, from, count), rows);
  if (plan.hasPanels())
    startPanel(b);
  emitLoop(b, loc, from, to, 1,
           [&](OpBuilder &b, Value row) { emitRow(b, row); });
  if (plan.hasPanels())
    storePanel(b, task);
}

void LaneRowEmitter::emitRow(OpBuilder &b, Value position) {
  frame.elements.setOutermostBlock(b.getInsertionBlock());
  row = emitDelinearize(b, loc, position, sizes(b, plan.getRowExtents()));
  keptBuffers.clear();
  for (const KeptValue &kept : plan.kept)
    keptBuffers.push_back(getScratch(
        b, kept.offset, getScalarType(getElementTypeOrSelf(kept.value))));
  for (stage = 0; stage < plan.stageCount; ++stage)
    emitStage(b, stage);
  if (!plan.wholeResults.empty() || plan.hasPanels())
    emitResults(b);
  storeResults(b, plan.rowResults, row);
}

// --- Panels

void LaneRowEmitter::startPanel(OpBuilder &b) {
  panelSums.clear();
  Value columns =
      size(b, getNumElements(plan.getReducedExtents(), b.getContext()));
  for (auto [op, offset] :
       llvm::zip_equal(plan.panelReductions, plan.accumulatorOffsets)) {
    auto reduction = cast<ReductionOpInterface>(op);
    panelSums.push_back(getScratch(b, offset, reduction.getAccumulatorType()));
    emitLoop(b, loc, emitIndex(b, loc, 0), columns, 1,
             [&](OpBuilder &b, Value column) {
               panelSums.back().store(b, loc, reduction.emitInit(b, loc),
                                      column);
             });
  }
}

void LaneRowEmitter::addToPanel(OpBuilder &b, ValueRange at, Value position) {
  for (auto [op, sums] : llvm::zip_equal(plan.panelReductions, panelSums)) {
    auto reduction = cast<ReductionOpInterface>(op);
    Value x = frame.elements.element(b, loc, op->getOperand(0), at);
    Value sum = sums.load(b, loc, position);
    sums.store(b, loc, reduction.emitCombine(b, loc, sum, x), position);
  }
}

void LaneRowEmitter::storePanel(OpBuilder &b, Value task) {
  Indices panel =
      emitDelinearize(b, loc, task, sizes(b, plan.getPanelExtents()));
  forReduced(b, {}, [&](OpBuilder &b, ValueRange reduced) {
    Indices at(panel);
    llvm::append_range(at, reduced);
    Value position = getReducedPosition(b, reduced);
    for (auto [i, op] : llvm::enumerate(plan.panelReductions)) {
      Value sum = panelSums[i].load(b, loc, position);
      Value result = op->getResult(0);
      frame.elements.define(
          result, at, emitRounding(b, loc, sum, getElementTypeOrSelf(result)));
      storeResults(b, plan.panelResults[i], at);
    }
  });
}

/// Booleans do not fit into vectors in memory, and their order does not matter.
static bool usesLanes(Operation *op) {
  auto reduction = dyn_cast<ReductionOpInterface>(op);
  return reduction && !reduction.getAccumulatorType().isInteger(1);
}

void LaneRowEmitter::emitStage(OpBuilder &b, unsigned stage) {
  lanes.clear();
  temporaries.clear();
  SmallVector<Operation *> scalars;
  for (Operation *op : getReductions(stage)) {
    if (usesLanes(op))
      lanes.push_back(cast<ReductionOpInterface>(op));
    else
      scalars.push_back(op);
  }
  llvm::SmallDenseMap<Type, unsigned> used;
  for (ReductionOpInterface op : lanes) {
    Type type = op.getAccumulatorType();
    auto &known = buffers[type];
    unsigned place = used[type]++;
    if (place == known.size())
      known.push_back(frame.elements.allocate(loc, type, kLanes));
    temporaries.push_back(known[place]);
  }
  if (!lanes.empty())
    emitLanes(b);
  for (auto [i, op] : llvm::enumerate(scalars))
    emitScalars(b, op, lanes.empty() && i == 0);
}

// --- Lanes

void LaneRowEmitter::emitLanes(OpBuilder &b) {
  Accumulators accumulators;
  for (ReductionOpInterface op : lanes) {
    auto type = VectorType::get(kVectorLanes, op.getAccumulatorType());
    Value init = b.create<vector::BroadcastOp>(loc, type, op.emitInit(b, loc));
    accumulators.append(kVectors, init);
  }
  accumulators = walkLanes(b, {}, accumulators);
  for (auto [i, op] : llvm::enumerate(lanes)) {
    Value scalar = combineLanes(
        b, op, ValueRange(accumulators).slice(i * kVectors, kVectors));
    Value result = op->getResult(0);
    scalar = emitRounding(b, loc, scalar, getElementTypeOrSelf(result));
    frame.elements.define(result, row, scalar);
  }
}

/// A loop that carries `carried`; `body` returns the new values.
static SmallVector<Value>
emitCarryLoop(OpBuilder &b, Location loc, Value from, Value to, int64_t step,
              ValueRange carried,
              llvm::function_ref<SmallVector<Value>(OpBuilder &, Value,
                                                    SmallVector<Value>)>
                  body) {
  auto loop =
      b.create<scf::ForOp>(loc, from, to, emitIndex(b, loc, step), carried);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  SmallVector<Value> values =
      body(inner, loop.getInductionVar(),
           SmallVector<Value>(loop.getRegionIterArgs()));
  inner.create<scf::YieldOp>(loc, values);
  return SmallVector<Value>(loop.getResults());
}

LaneRowEmitter::Accumulators
LaneRowEmitter::walkLanes(OpBuilder &b, Indices reduced,
                          Accumulators accumulators) {
  Extents extents = plan.getReducedExtents();
  if (reduced.size() + 1 == extents.size())
    return walkLastAxis(b, reduced, accumulators);
  Value extent = size(b, extents[reduced.size()]);
  return emitCarryLoop(b, loc, emitIndex(b, loc, 0), extent, 1, accumulators,
                       [&](OpBuilder &b, Value i, Accumulators carried) {
                         Indices inner(reduced);
                         inner.push_back(i);
                         return walkLanes(b, inner, carried);
                       });
}

LaneRowEmitter::Accumulators
LaneRowEmitter::walkLastAxis(OpBuilder &b, Indices reduced,
                             Accumulators accumulators) {
  AffineExpr extent = plan.space.back();
  AffineExpr whole = extent.floorDiv(kLanes) * kLanes;
  std::optional<int64_t> known = getConstant(extent);
  Value end = size(b, whole), lanesCount = emitIndex(b, loc, kLanes);
  if (!known || *known >= kLanes)
    accumulators = emitCarryLoop(
        b, loc, emitIndex(b, loc, 0), end, kLanes, accumulators,
        [&](OpBuilder &b, Value first, Accumulators carried) {
          return emitChunk(b, {reduced, first, lanesCount, true}, carried);
        });
  if (!known || *known % kLanes != 0)
    accumulators = emitChunk(
        b, {reduced, end, emitSub(b, loc, size(b, extent), end), false},
        accumulators);
  return accumulators;
}

/// Computes the elements of a chunk for all reductions, then combines them. The
/// lanes after the last element get the neutral one.
LaneRowEmitter::Accumulators
LaneRowEmitter::emitChunk(OpBuilder &b, const Chunk &chunk,
                          Accumulators accumulators) {
  emitLoop(b, loc, emitIndex(b, loc, 0), chunk.count, 1,
           [&](OpBuilder &b, Value lane) {
             Indices reduced(chunk.reduced);
             reduced.push_back(emitAdd(b, loc, chunk.first, lane));
             Indices at = getSpaceIndices(row, reduced);
             Value position = getReducedPosition(b, reduced);
             readKept(b, stage, at, position);
             writeKept(b, stage, at, position);
             for (auto [op, temporary] : llvm::zip_equal(lanes, temporaries))
               temporary.store(
                   b, loc,
                   frame.elements.element(b, loc, op->getOperand(0), at), lane);
           });
  if (!chunk.isWhole)
    emitLoop(b, loc, chunk.count, emitIndex(b, loc, kLanes), 1,
             [&](OpBuilder &b, Value lane) {
               for (auto [op, temporary] : llvm::zip_equal(lanes, temporaries))
                 temporary.store(b, loc, op.emitInit(b, loc), lane);
             });
  for (auto [i, op] : llvm::enumerate(lanes))
    for (int64_t j = 0; j < kVectors; ++j) {
      Value elements = temporaries[i].loadVector(
          b, loc, emitIndex(b, loc, j * kVectorLanes), kVectorLanes);
      Value &accumulator = accumulators[i * kVectors + j];
      accumulator = op.emitCombine(b, loc, accumulator, elements);
    }
  return accumulators;
}

/// The tree over the lanes: halves with halves.
Value LaneRowEmitter::combineLanes(OpBuilder &b, ReductionOpInterface op,
                                   ValueRange vectors) {
  SmallVector<Value> values(vectors);
  for (; values.size() > 1; values.resize(values.size() / 2))
    for (size_t i = 0; i < values.size() / 2; ++i)
      values[i] =
          op.emitCombine(b, loc, values[i], values[i + values.size() / 2]);
  Value vector = values.front();
  auto slice = [&](int64_t from, int64_t count) {
    return b.create<vector::ExtractStridedSliceOp>(loc, vector, from, count,
                                                   ArrayRef<int64_t>{1});
  };
  for (int64_t count = kVectorLanes / 2; count > 0; count /= 2) {
    Value low = slice(0, count), high = slice(count, count);
    vector = op.emitCombine(b, loc, low, high);
  }
  return b.create<vector::ExtractOp>(loc, vector, ArrayRef<int64_t>{0});
}

// --- Scalars

void LaneRowEmitter::emitScalars(OpBuilder &b, Operation *op, bool writes) {
  Accumulators accumulators;
  if (auto argReduce = dyn_cast<ArgReduceOp>(op))
    accumulators = {emitWorst(b, argReduce), emitIndex(b, loc, 0)};
  else
    accumulators = {cast<ReductionOpInterface>(op).emitInit(b, loc)};
  accumulators = walkScalars(b, op, writes, {}, accumulators);
  Value scalar = accumulators.front();
  if (isa<ArgReduceOp>(op))
    scalar = b.create<arith::IndexCastOp>(loc, b.getI64Type(), accumulators[1]);
  frame.elements.define(op->getResult(0), row, scalar);
}

LaneRowEmitter::Accumulators
LaneRowEmitter::walkScalars(OpBuilder &b, Operation *op, bool writes,
                            Indices reduced, Accumulators accumulators) {
  Extents extents = plan.getReducedExtents();
  if (reduced.size() < extents.size()) {
    Value extent = size(b, extents[reduced.size()]);
    return emitCarryLoop(b, loc, emitIndex(b, loc, 0), extent, 1, accumulators,
                         [&](OpBuilder &b, Value i, Accumulators carried) {
                           Indices inner(reduced);
                           inner.push_back(i);
                           return walkScalars(b, op, writes, inner, carried);
                         });
  }
  Indices at = getSpaceIndices(row, reduced);
  Value position = getReducedPosition(b, reduced);
  readKept(b, writes ? stage : stage + 1, at, position);
  if (writes)
    writeKept(b, stage, at, position);
  return combineScalar(b, op, reduced, accumulators);
}

LaneRowEmitter::Accumulators
LaneRowEmitter::combineScalar(OpBuilder &b, Operation *op, ValueRange reduced,
                              Accumulators accumulators) {
  Indices at = getSpaceIndices(row, reduced);
  Value x = frame.elements.element(b, loc, op->getOperand(0), at);
  if (auto argReduce = dyn_cast<ArgReduceOp>(op)) {
    auto [value, index] = emitBetter(b, argReduce, accumulators[0],
                                     accumulators[1], x, reduced.back());
    return {value, index};
  }
  return {
      cast<ReductionOpInterface>(op).emitCombine(b, loc, accumulators[0], x)};
}

// --- Results

void LaneRowEmitter::forReduced(OpBuilder &b, Indices outer, ReducedBody body) {
  Extents extents = plan.getReducedExtents();
  if (outer.size() == extents.size())
    return body(b, outer);
  Value extent = size(b, extents[outer.size()]);
  emitLoop(b, loc, emitIndex(b, loc, 0), extent, 1, [&](OpBuilder &b, Value i) {
    Indices inner(outer);
    inner.push_back(i);
    forReduced(b, inner, body);
  });
}

void LaneRowEmitter::emitResults(OpBuilder &b) {
  forReduced(b, {}, [&](OpBuilder &b, ValueRange reduced) {
    Indices at = getSpaceIndices(row, reduced);
    Value position = getReducedPosition(b, reduced);
    readKept(b, plan.stageCount, at, position);
    if (plan.hasPanels())
      addToPanel(b, at, position);
    storeResults(b, plan.wholeResults, at);
  });
}

} // namespace tcc::cpu
