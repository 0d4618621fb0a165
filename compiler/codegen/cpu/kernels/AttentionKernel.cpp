//===- AttentionKernel.cpp - graph.attention as one kernel ----------------===//

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/tile/Attention.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

namespace {

struct AttentionPlan {
  AttentionOp op;
  Extents batch; // axes
  AffineExpr queries, keys, depth, columns;
  MatrixSide query, key, value;
  MatrixAccess queryAccess, keyAccess, valueAccess;
  AttentionSizes bounds;
  Type sum;

  AttentionPlan(FusedOp region, ArrayRef<SymbolAttr> symbols);

private:
  Packing choosePacking();
};

} // namespace

/// Whether the elements of a side can be read, or packed, in units. Those along
/// k that are adjacent in memory must start with a unit everywhere.
static bool holdsUnits(const MatrixSide &side, const MatrixAccess &access,
                       Packing packing) {
  if (access.kind == MatrixAccess::Elements ||
      access.kind == MatrixAccess::Columns)
    return true;
  StridedInput from = traceInput(side.tensor);
  Extents extents = getExtents(side.tensor);
  for (auto [axis, stride] : llvm::enumerate(from.strides))
    if (int64_t(axis) != side.kAxis && getConstant(extents[axis]) != 1 &&
        !stride.isMultipleOf(packing.group))
      return false;
  return extents[side.kAxis].isMultipleOf(packing.group) &&
         from.offset.isMultipleOf(packing.group);
}

/// Sides that do not hold units are computed element by element.
Packing AttentionPlan::choosePacking() {
  Packing packing = getPacking(getElementTypeOrSelf(op.getQuery()));
  if (packing.group == 1)
    return packing;
  for (auto [side, access] :
       {std::pair(&query, &queryAccess), std::pair(&key, &keyAccess),
        std::pair(&value, &valueAccess)})
    if (!holdsUnits(*side, *access, packing)) {
      access->kind = MatrixAccess::Elements;
      access->elementType = getComputedType(side->tensor);
    }
  return packing;
}

AttentionPlan::AttentionPlan(FusedOp region, ArrayRef<SymbolAttr> symbols)
    : op(cast<AttentionOp>(getAnchor(region))) {
  batch = getExtents(op.getResult());
  int64_t rank = batch.size(), batchRank = rank - 2;
  queries = batch[rank - 2];
  columns = batch[rank - 1];
  batch.pop_back_n(2);
  keys = getExtent(op.getKey(), rank - 2);
  depth = getExtent(op.getKey(), rank - 1);
  query = {op.getQuery(), rank - 2, rank - 1, batchRank};
  key = {op.getKey(), rank - 2, rank - 1, batchRank};
  value = {op.getValue(), rank - 1, rank - 2, batchRank};
  queryAccess = traceAccess(query);
  if (queryAccess.kind == MatrixAccess::Rows)
    queryAccess.kind = MatrixAccess::InPlace;
  keyAccess = traceAccess(key);
  valueAccess = traceAccess(value);
  auto max = [&](AffineExpr extent) { return getRange(extent, symbols).max; };
  Packing packing = choosePacking();
  for (MatrixAccess *access : {&queryAccess, &keyAccess, &valueAccess})
    access->setPacking(packing);
  bounds = {getConstant(getNumElements(batch, region.getContext())),
            max(queries),
            max(keys),
            max(depth),
            max(columns),
            packing};
  sum = getSumType(getElementTypeOrSelf(op.getResult()));
}

FailureOr<TaskPlan> planAttentionKernel(FusedOp region,
                                        ArrayRef<SymbolAttr> symbols) {
  Operation *anchor = getAnchor(region);
  if (!isa<AttentionOp>(anchor) || anchor->getNumResults() > 1)
    return anchor->emitOpError("has no kernel on a CPU");
  AttentionPlan plan(region, symbols);
  AffineExpr batch = getNumElements(plan.batch, region.getContext());
  int64_t rows = chooseAttentionBlocking(plan.bounds).taskRows;
  return TaskPlan{batch * plan.queries.ceilDiv(rows),
                  attentionScratchBytes(plan.bounds, plan.sum,
                                        plan.queryAccess.getPackedType(),
                                        plan.keyAccess.getPackedType(),
                                        plan.valueAccess.getPackedType())};
}

/// `element`, and zeros from k = `depth` on.
static ElementFunction fillUp(ElementFunction element, Value depth, Type type) {
  return [=](KernelBuilder &b, Value batch, Value lane, Value k) {
    return b.choose(
        b.less(k, depth), type, [&] { return element(b, batch, lane, k); },
        [&] { return b.zero(type); });
  };
}

LogicalResult emitAttentionKernel(OpBuilder &builder, KernelFrame &frame) {
  KernelBuilder b = makeKernelBuilder(builder, frame.loc);
  AttentionPlan plan(frame.region, frame.symbols);
  auto size = [&](OpBuilder &b, AffineExpr expression) {
    return frame.elements.size(b, frame.loc, expression);
  };
  auto batchIndices = [&](KernelBuilder &b, Value batch) {
    auto sizes = llvm::map_to_vector(
        plan.batch, [&](AffineExpr extent) { return size(b, extent); });
    return b.delinearize(batch, sizes);
  };
  Packing packing = plan.bounds.packing;
  auto operand = [&](const MatrixSide &side, const MatrixAccess &access) {
    MatrixSource source = makeSource(frame, side, batchIndices);
    AffineExpr depth = getExtent(side.tensor, side.kAxis);
    if (!depth.isMultipleOf(packing.group)) {
      source.rows = size(b, depth);
      source.element =
          fillUp(source.element, source.rows, getComputedType(side.tensor));
    }
    return makeOperand(frame, access, source, panelRows);
  };
  auto at = [&](KernelBuilder &b, Value tensor, Value batch, Value i, Value j) {
    SmallVector<Value> indices = batchIndices(b, batch);
    indices = alignBatch(b, tensor, plan.batch, indices);
    indices.append({i, j});
    return indices;
  };
  Attention attention;
  attention.batch = size(b, getNumElements(plan.batch, b.getContext()));
  attention.queries = size(b, plan.queries);
  attention.keys = size(b, plan.keys);
  attention.depth = size(b, plan.depth);
  attention.columns = size(b, plan.columns);
  attention.bounds = plan.bounds;
  attention.query = operand(plan.query, plan.queryAccess);
  attention.key = operand(plan.key, plan.keyAccess);
  attention.value = operand(plan.value, plan.valueAccess);
  attention.arithmetic.sum = plan.sum;
  attention.arithmetic.packing = packing;
  attention.guard = plan.op.getGuard();
  attention.unit = getVectorUnit(frame.options);
  double scale = plan.op.getScale().convertToDouble();
  attention.score = [&](KernelBuilder &b, Value x, Value batch, Value i,
                        Value j) -> Value {
    Value factor = b.create<arith::ConstantOp>(b.getFloatAttr(plan.sum, scale));
    x = b.create<arith::MulFOp>(x, factor);
    Value mask = plan.op.getMask();
    if (!mask)
      return x;
    Value y =
        frame.elements.element(b, frame.loc, mask, at(b, mask, batch, i, j));
    return b.create<arith::AddFOp>(x, b.widen(y, plan.sum, false));
  };
  attention.epilogue = [&](KernelBuilder &b, Value x, Value batch, Value i,
                           Value j) {
    emitResults(b, frame, x, at(b, plan.op.getResult(), batch, i, j));
  };
  emitAttention(b, attention, frame.firstTask, frame.lastTask, frame.scratch);
  return success();
}

} // namespace tcc::cpu
