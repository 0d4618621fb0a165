#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

Value TensorEmitter::reduceAndBroadcast(ReduceKind kind, Value x,
                                        ArrayRef<int64_t> axes) const {
  return broadcastBack(emit<ReduceOp>(kind, x, axes), x, axes);
}

Value TensorEmitter::broadcastBack(Value reduced, Value x,
                                   ArrayRef<int64_t> axes) const {
  Extents extents = getExtents(x);
  for (int64_t axis : axes)
    extents[axis] = builder.getAffineConstantExpr(1);
  auto type = withElementType(cast<RankedTensorType>(x.getType()),
                              getElementTypeOrSelf(reduced));
  return emit<BroadcastOp>(type, reshape(reduced, extents));
}

Value TensorEmitter::sumTo(Value x, RankedTensorType type) const {
  Extents from = getExtents(x), to = getExtents(type);
  size_t added = from.size() - to.size();
  SmallVector<int64_t> axes;
  for (auto [axis, extent] : llvm::enumerate(from))
    if (axis < added ||
        (getConstant(to[axis - added]) == 1 && getConstant(extent) != 1))
      axes.push_back(axis);
  if (axes.empty())
    return x;
  return reshape(emit<ReduceOp>(ReduceKind::sum, x, axes), to);
}

/// `from`, with an axis before each that `to` repeats: as long as there are
/// repeats, or 1 if `isOnce`.
static Extents splitRepeats(const Extents &from, const Extents &to,
                            bool isOnce) {
  Extents split;
  for (auto [part, whole] : llvm::zip_equal(from, to)) {
    if (!isEqual(part, whole))
      split.push_back(isOnce ? getAffineConstantExpr(1, part.getContext())
                             : whole.floorDiv(part));
    split.push_back(part);
  }
  return split;
}

Value TensorEmitter::tile(Value x, RankedTensorType type) const {
  if (x.getType() == type)
    return x;
  Extents from = getExtents(x), to = getExtents(type);
  if (auto common = broadcastExtents(from, to);
      common && llvm::equal(*common, to, isEqual))
    return emit<BroadcastOp>(type, x);
  Value split = reshape(x, splitRepeats(from, to, /*isOnce=*/true));
  auto whole = makeTensorType(splitRepeats(from, to, /*isOnce=*/false),
                              type.getElementType());
  return reshape(emit<BroadcastOp>(whole, split), to);
}

Value TensorEmitter::sumTiles(Value x, RankedTensorType type) const {
  Extents from = getExtents(type), to = getExtents(x);
  if (llvm::equal(from, to, isEqual))
    return x;
  Value split = reshape(x, splitRepeats(from, to, /*isOnce=*/false));
  auto part = makeTensorType(splitRepeats(from, to, /*isOnce=*/true),
                             getElementTypeOrSelf(x));
  return reshape(sumTo(split, part), from);
}

Value TensorEmitter::divideByCount(Value sum, Value x,
                                   ArrayRef<int64_t> axes) const {
  Extents counted;
  for (int64_t axis : axes)
    counted.push_back(getExtent(x, axis));
  AffineExpr count = getNumElements(counted, builder.getContext());
  if (auto constant = getConstant(count))
    return emit<MulOp>(sum, splat(sum, 1.0 / double(*constant)));
  Value size = emit<SizeOp>(makeSizeMap(count, builder.getContext()));
  Value number = emit<CastOp>(size, getElementTypeOrSelf(sum));
  return emit<DivOp>(sum, emit<BroadcastOp>(sum.getType(), number));
}

Value TensorEmitter::mean(Value x, ArrayRef<int64_t> axes) const {
  Value sum = emit<ReduceOp>(ReduceKind::sum, x, axes);
  return divideByCount(sum, x, axes);
}

Value TensorEmitter::alongChannels(Value parameter, Value like) const {
  auto type = cast<RankedTensorType>(like.getType());
  Extents extents(type.getRank() - 1, builder.getAffineConstantExpr(1));
  extents[0] = getExtent(parameter, 0);
  return emit<BroadcastOp>(
      withElementType(type, getElementTypeOrSelf(parameter)),
      reshape(parameter, extents));
}

Value TensorEmitter::splat(RankedTensorType type, double value) const {
  Type elementType = type.getElementType();
  auto scalar = RankedTensorType::get({}, elementType);
  TypedAttr attr;
  if (isa<FloatType>(elementType))
    attr = builder.getFloatAttr(elementType, value);
  else
    attr = builder.getIntegerAttr(elementType, int64_t(value));
  Value constant =
      emit<ConstantOp>(scalar, DenseElementsAttr::get(scalar, attr));
  return type == scalar ? constant : emit<BroadcastOp>(type, constant);
}

Value TensorEmitter::splat(Value x, double value) const {
  return splat(cast<RankedTensorType>(x.getType()), value);
}

Value TensorEmitter::widen(Value x) const {
  Type type = getElementTypeOrSelf(x);
  if (type.getIntOrFloatBitWidth() >= 32)
    return x;
  return emit<CastOp>(x, builder.getF32Type());
}

Value TensorEmitter::castTo(Value x, RankedTensorType type) const {
  if (getElementTypeOrSelf(x) == type.getElementType())
    return x;
  return emit<CastOp>(x, type.getElementType());
}

Value TensorEmitter::reshape(Value x, ArrayRef<AffineExpr> extents) const {
  auto type = makeTensorType(extents, getElementTypeOrSelf(x));
  return type == x.getType() ? x : emit<ReshapeOp>(type, x);
}
