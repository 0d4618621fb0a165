//===- RowKernel.cpp - Kernels with reductions ----------------------------===//

#include "compiler/codegen/cpu/kernels/RowEmitter.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

RowEmitter::RowEmitter(KernelFrame &frame, const RowPlan &plan)
    : frame(frame), plan(plan), loc(frame.loc) {}

RowEmitter::Indices RowEmitter::sizes(OpBuilder &b,
                                      ArrayRef<AffineExpr> extents) {
  Indices result;
  for (AffineExpr extent : extents)
    result.push_back(size(b, extent));
  return result;
}

RowEmitter::Indices RowEmitter::getSpaceIndices(ValueRange kept,
                                                ValueRange reduced) const {
  Indices indices;
  size_t k = 0, r = 0;
  for (bool isReduced : plan.isReduced)
    indices.push_back(isReduced ? reduced[r++] : kept[k++]);
  return indices;
}

Value RowEmitter::getReducedPosition(OpBuilder &b, ValueRange reduced) {
  Extents extents = plan.getReducedExtents();
  Value position = reduced.front();
  for (size_t i = 1; i < reduced.size(); ++i)
    position = emitAdd(b, loc, emitMul(b, loc, position, size(b, extents[i])),
                       reduced[i]);
  return position;
}

Buffer RowEmitter::getScratch(OpBuilder &b, int64_t offset, Type elementType) {
  Value pointer = frame.scratch;
  Value address = b.create<LLVM::GEPOp>(
      loc, pointer.getType(), b.getI8Type(), pointer,
      ArrayRef<LLVM::GEPArg>{int32_t(offset)}, /*inbounds=*/true);
  return Buffer(address, elementType);
}

void RowEmitter::readKept(OpBuilder &b, unsigned stage, ValueRange at,
                          Value position) {
  for (auto [kept, buffer] : llvm::zip_equal(plan.kept, keptBuffers))
    if (kept.stage < stage)
      frame.elements.define(kept.value, at, buffer.load(b, loc, position));
}

void RowEmitter::writeKept(OpBuilder &b, unsigned stage, ValueRange at,
                           Value position) {
  for (auto [kept, buffer] : llvm::zip_equal(plan.kept, keptBuffers))
    if (kept.stage == stage)
      buffer.store(b, loc, frame.elements.element(b, loc, kept.value, at),
                   position);
}

void RowEmitter::storeResults(OpBuilder &b, ArrayRef<unsigned> results,
                              ValueRange at) {
  for (unsigned i : results)
    frame.elements.element(b, loc, frame.getYields()[i], at);
  for (unsigned i : results)
    frame.elements.storeElement(b, loc, frame.getYields()[i], at,
                                frame.results[i]);
}

SmallVector<Operation *> RowEmitter::getReductions(unsigned stage) const {
  SmallVector<Operation *> ops;
  for (const Reduction &reduction : plan.reductions)
    if (reduction.stage == stage)
      ops.push_back(reduction.op);
  return ops;
}

std::pair<Value, Value> RowEmitter::emitBetter(OpBuilder &b, ArgReduceOp op,
                                               Value value, Value index,
                                               Value newValue, Value newIndex) {
  ScalarEmitter e(b, loc);
  bool isMax = op.getKind() == ReduceKind::max;
  Value isBetter;
  if (isa<FloatType>(value.getType())) {
    // Unordered predicates hold for NaN on either side. The first NaN is better
    // than all numbers and stays, or the last one does.
    using P = arith::CmpFPredicate;
    bool isLast = op.getSelectLast();
    P predicate =
        isMax ? (isLast ? P::UGE : P::UGT) : (isLast ? P::ULE : P::ULT);
    Value isAhead = e.emit<arith::CmpFOp>(predicate, newValue, value);
    Value isNumber = e.emit<arith::CmpFOp>(P::ORD, value, value);
    if (isLast)
      isNumber = e.emit<arith::OrIOp>(
          isNumber, e.emit<arith::CmpFOp>(P::UNO, newValue, newValue));
    isBetter = e.emit<arith::AndIOp>(isAhead, isNumber);
  } else {
    bool isUnsigned = isUnsignedElement(op.getX());
    using P = arith::CmpIPredicate;
    P strict =
        isMax ? (isUnsigned ? P::ugt : P::sgt) : (isUnsigned ? P::ult : P::slt);
    P loose =
        isMax ? (isUnsigned ? P::uge : P::sge) : (isUnsigned ? P::ule : P::sle);
    isBetter = e.compare(op.getSelectLast() ? loose : strict, newValue, value);
  }
  return {e.select(isBetter, newValue, value),
          e.select(isBetter, newIndex, index)};
}

Value RowEmitter::emitWorst(OpBuilder &b, ArgReduceOp op) {
  ScalarEmitter e(b, loc);
  Type type = getScalarType(getElementTypeOrSelf(op.getX()));
  bool isMax = op.getKind() == ReduceKind::max;
  if (isa<FloatType>(type)) {
    double infinity = std::numeric_limits<double>::infinity();
    return e.constant(type, isMax ? -infinity : infinity);
  }
  unsigned width = type.getIntOrFloatBitWidth();
  if (isUnsignedElement(op.getX()))
    return e.integer(type, isMax ? APInt::getMinValue(width)
                                 : APInt::getMaxValue(width));
  return e.integer(type, isMax ? APInt::getSignedMinValue(width)
                               : APInt::getSignedMaxValue(width));
}

/// Reductions of axes of extent 1 are gone after simplification.
static bool hasReductions(FusedOp region) {
  return llvm::any_of(region.getBody().front(),
                      [](Operation &op) { return isOnePerRow(&op); });
}

static RowPlan planRows(FusedOp region, ArrayRef<SymbolAttr> symbols) {
  return RowPlan(region, symbols, /*leastLanes=*/kLanes);
}

FailureOr<TaskPlan> planRowKernel(FusedOp region,
                                  ArrayRef<SymbolAttr> symbols) {
  if (!hasReductions(region))
    return planPointwiseKernel(region, symbols);
  RowPlan plan = planRows(region, symbols);
  if (plan.hasPanels() && !llvm::all_of(plan.getPanelRowExtents(), getConstant))
    return region.emitOpError("has panels of any number of rows");
  return TaskPlan{plan.getTasks(), plan.scratchBytes};
}

LogicalResult emitRowKernel(OpBuilder &b, KernelFrame &frame) {
  if (!hasReductions(frame.region))
    return emitPointwiseKernel(b, frame);
  RowPlan plan = planRows(frame.region, frame.symbols);
  auto forTasks = [&](auto &&emitter) {
    emitLoop(b, frame.loc, frame.firstTask, frame.lastTask, 1,
             [&](OpBuilder &b, Value task) { emitter.emitTask(b, task); });
  };
  if (plan.hasLanes())
    forTasks(LaneRowEmitter(frame, plan));
  else
    forTasks(ColumnRowEmitter(frame, plan));
  return success();
}

} // namespace tcc::cpu
