#include "dialects/graph/Strides.h"
#include "dialects/graph/GraphOps.h"

using namespace mlir;

namespace tcc::graph {

static Extents getRowMajorStrides(ArrayRef<AffineExpr> extents,
                                  MLIRContext *context) {
  Extents strides(extents.size());
  AffineExpr stride = getAffineConstantExpr(1, context);
  for (size_t i = extents.size(); i-- > 0;) {
    strides[i] = stride;
    stride = stride * extents[i];
  }
  return strides;
}

Extents getRowMajorStrides(Value tensor) {
  return getRowMajorStrides(getExtents(tensor), tensor.getContext());
}

/// The one stride by which the axes of a group are walked together: that of the
/// last long one, if the others follow.
static AffineExpr getCommonStride(ArrayRef<AffineExpr> strides,
                                  ArrayRef<AffineExpr> extents) {
  AffineExpr stride, next;
  for (size_t i = extents.size(); i-- > 0;) {
    if (getConstant(extents[i]) == 1)
      continue;
    if (stride && !isEqual(strides[i], next))
      return AffineExpr();
    if (!stride)
      stride = strides[i];
    next = strides[i] * extents[i];
  }
  return stride ? stride : getAffineConstantExpr(0, extents[0].getContext());
}

std::optional<Extents> reshapeStrides(ArrayRef<AffineExpr> strides,
                                      ArrayRef<AffineExpr> from,
                                      ArrayRef<AffineExpr> to) {
  Extents result(to.size());
  for (const AxisGroup &group : groupAxes(from, to)) {
    auto toAxes = to.slice(group.toBegin, group.toEnd - group.toBegin);
    size_t fromCount = group.fromEnd - group.fromBegin;
    if (toAxes.empty())
      continue;
    AffineExpr stride = getAffineConstantExpr(0, toAxes[0].getContext());
    if (fromCount > 0)
      stride = getCommonStride(strides.slice(group.fromBegin, fromCount),
                               from.slice(group.fromBegin, fromCount));
    if (!stride)
      return std::nullopt;
    Extents inner = getRowMajorStrides(toAxes, stride.getContext());
    for (auto [i, each] : llvm::enumerate(inner))
      result[group.toBegin + i] = each * stride;
  }
  return result;
}

static StridedInput traceReshape(ReshapeOp op, StridedInput from) {
  std::optional<Extents> strides = reshapeStrides(
      from.strides, getExtents(op.getX()), getExtents(op.getResult()));
  if (!strides)
    return {};
  return {from.input, *strides, from.offset};
}

static StridedInput traceTranspose(TransposeOp op, const StridedInput &from) {
  Extents strides;
  for (int64_t axis : op.getPermutation())
    strides.push_back(from.strides[axis]);
  return {from.input, strides, from.offset};
}

static StridedInput traceSlice(SliceOp op, StridedInput from) {
  for (auto [stride, start, step] : llvm::zip_equal(
           from.strides, op.getStarts().getResults(), op.getSteps())) {
    from.offset = from.offset + start * stride;
    stride = stride * step;
  }
  return from;
}

static StridedInput traceBroadcast(BroadcastOp op, const StridedInput &from) {
  Extents extents = getExtents(op.getX());
  AffineExpr zero = getAffineConstantExpr(0, op.getContext());
  Extents strides(getExtents(op.getResult()).size() - extents.size(), zero);
  for (auto [extent, stride] : llvm::zip_equal(extents, from.strides))
    strides.push_back(getConstant(extent) == 1 ? zero : stride);
  return {from.input, strides, from.offset};
}

bool isFloatCast(Operation *op) {
  auto cast = dyn_cast_if_present<CastOp>(op);
  return cast && isa<FloatType>(getElementTypeOrSelf(cast.getX())) &&
         isa<FloatType>(getElementTypeOrSelf(cast.getType()));
}

bool isWidening(Operation *op) {
  auto getWidth = [](Value value) {
    return getElementTypeOrSelf(value).getIntOrFloatBitWidth();
  };
  return isFloatCast(op) &&
         getWidth(op->getOperand(0)) < getWidth(op->getResult(0));
}

StridedInput traceInput(Value tensor, function_ref<bool(Value)> isInput,
                        bool throughCasts) {
  if (isInput(tensor))
    return {tensor, getRowMajorStrides(tensor),
            getAffineConstantExpr(0, tensor.getContext())};
  Operation *op = tensor.getDefiningOp();
  bool isCast = throughCasts && isFloatCast(op);
  if (!isCast &&
      !isa_and_nonnull<ReshapeOp, TransposeOp, SliceOp, BroadcastOp>(op))
    return {};
  StridedInput from = traceInput(op->getOperand(0), isInput, throughCasts);
  if (isCast)
    return from;
  if (!from.input)
    return {};
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return traceReshape(reshape, from);
  if (auto transpose = dyn_cast<TransposeOp>(op))
    return traceTranspose(transpose, from);
  if (auto slice = dyn_cast<SliceOp>(op))
    return traceSlice(slice, from);
  return traceBroadcast(cast<BroadcastOp>(op), from);
}

StridedInput traceInput(Value tensor) {
  return traceInput(tensor, [](Value v) { return isa<BlockArgument>(v); });
}

static bool addTerms(AffineExpr index, int64_t factor, LoopSum &sum) {
  if (auto loop = dyn_cast<AffineDimExpr>(index)) {
    sum.multiples[loop.getPosition()] += factor;
    return true;
  }
  if (auto constant = dyn_cast<AffineConstantExpr>(index)) {
    sum.constant += constant.getValue() * factor;
    return true;
  }
  auto binary = dyn_cast<AffineBinaryOpExpr>(index);
  if (binary && binary.getKind() == AffineExprKind::Add)
    return addTerms(binary.getLHS(), factor, sum) &&
           addTerms(binary.getRHS(), factor, sum);
  auto scale = binary ? dyn_cast<AffineConstantExpr>(binary.getRHS()) : nullptr;
  return scale && binary.getKind() == AffineExprKind::Mul &&
         addTerms(binary.getLHS(), factor * scale.getValue(), sum);
}

std::optional<LoopSum> asLoopSum(AffineExpr index, unsigned loops) {
  LoopSum sum{SmallVector<int64_t>(loops), 0};
  return addTerms(index, 1, sum) ? std::optional(sum) : std::nullopt;
}

std::optional<LoopStrides> spreadOverLoops(const StridedInput &from,
                                           AffineMap map) {
  if (!from.input)
    return std::nullopt;
  AffineExpr none = getAffineConstantExpr(0, map.getContext());
  LoopStrides result{from.input, Extents(map.getNumDims(), none), from.offset};
  for (auto [stride, index] : llvm::zip(from.strides, map.getResults())) {
    std::optional<LoopSum> sum = asLoopSum(index, map.getNumDims());
    if (!sum)
      return std::nullopt;
    for (auto [of, multiple] : llvm::zip_equal(result.strides, sum->multiples))
      of = of + stride * multiple;
    result.offset = result.offset + stride * sum->constant;
  }
  return result;
}

bool staysInside(Value tensor, AffineMap map, ArrayRef<AffineExpr> extents) {
  for (auto [axis, index] : llvm::enumerate(map.getResults())) {
    std::optional<LoopSum> sum = asLoopSum(index, map.getNumDims());
    auto isNegative = [](int64_t multiple) { return multiple < 0; };
    if (!sum || sum->constant < 0 || llvm::any_of(sum->multiples, isNegative))
      return false;
    AffineExpr room = getExtent(tensor, axis) - 1 - sum->constant;
    for (auto [extent, multiple] : llvm::zip_equal(extents, sum->multiples))
      room = room - (extent - 1) * multiple;
    AffineExpr none = getAffineConstantExpr(0, map.getContext());
    std::optional<int64_t> known = getConstant(room);
    if (known ? *known < 0 : !isEqual(room, none))
      return false;
  }
  return true;
}

} // namespace tcc::graph
