#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

static RankedTensorType getType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

/// Index tuples of one index each.
static Value makeTuples(const TensorEmitter &emitter, Value indices) {
  Extents extents = getExtents(indices);
  extents.push_back(emitter.builder.getAffineConstantExpr(1));
  return emitter.reshape(indices, extents);
}

/// The permutation of `rank` axes that brings `count` axes from `first` on to
/// the front.
static SmallVector<int64_t> bringToFront(int64_t rank, int64_t first,
                                         int64_t count) {
  SmallVector<int64_t> permutation =
      llvm::to_vector(llvm::seq<int64_t>(first, first + count));
  for (int64_t axis = 0; axis < rank; ++axis)
    if (axis < first || axis >= first + count)
      permutation.push_back(axis);
  return permutation;
}

/// Slices are added where they were read. Tuples index leading axes, so that
/// the axis stands first.
LogicalResult GatherOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value updates = gradients.get(getResult());
  int64_t axis = getAxis(), rank = ::getType(getX()).getRank();
  SmallVector<int64_t> order = bringToFront(rank, axis, 1);
  updates = emitter.emit<TransposeOp>(
      updates, bringToFront(::getType(updates).getRank(), axis,
                            ::getType(getIndices()).getRank()));
  Extents extents = getExtents(getX()), ordered;
  for (int64_t i : order)
    ordered.push_back(extents[i]);
  Value zeros = emitter.splat(
      makeTensorType(ordered, getElementTypeOrSelf(updates)), 0.0);
  Value sum = emitter.emit<ScatterNdOp>(
      zeros, makeTuples(emitter, getIndices()), updates, ScatterKind::add);
  gradients.add(getX(),
                emitter.emit<TransposeOp>(sum, invertPermutationVector(order)));
  return success();
}

/// True if `indices` has one index for each row of x along `axis`.
static bool hasOneIndexPerRow(Value x, Value indices, int64_t axis) {
  for (auto [i, extents] :
       llvm::enumerate(llvm::zip_equal(getExtents(x), getExtents(indices)))) {
    auto [whole, part] = extents;
    if (int64_t(i) == axis ? getConstant(part) != 1 : !isEqual(whole, part))
      return false;
  }
  return true;
}

/// `updates` where the index along `axis` of `type` is that of `indices`, both
/// with one element along it; zero elsewhere.
static Value placeInRows(const TensorEmitter &emitter, RankedTensorType type,
                         Value indices, Value updates, int64_t axis) {
  auto whole = withElementType(type, getElementTypeOrSelf(indices));
  Value extent = emitter.emit<BroadcastOp>(
      whole, emitter.emit<CastOp>(
                 emitter.emit<SizeOp>(makeSizeMap(
                     getExtents(type)[axis], emitter.builder.getContext())),
                 whole.getElementType()));
  Expr index{emitter.emit<BroadcastOp>(whole, indices), &emitter};
  Expr wrapped = select(compare(CompareKind::lt, index, index.like(0.0)),
                        index + Expr{extent, &emitter}, index);
  Expr place{emitter.emit<IotaOp>(whole, axis), &emitter};
  return emitter.emit<SelectOp>(compare(CompareKind::eq, place, wrapped).value,
                                emitter.emit<BroadcastOp>(type, updates),
                                emitter.splat(type, 0.0));
}

LogicalResult GatherElementsOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value updates = gradients.get(getResult());
  auto type = ::getType(getX());
  if (hasOneIndexPerRow(getX(), getIndices(), getAxis())) {
    gradients.add(getX(),
                  placeInRows(emitter, type, getIndices(), updates, getAxis()));
    return success();
  }
  gradients.add(getX(), emitter.emit<ScatterElementsOp>(
                            emitter.splat(type, 0.0), getIndices(), updates,
                            getAxis(), ScatterKind::add));
  return success();
}

/// The index tuples with the indices of the batch axes before them.
static Value addBatchIndices(const TensorEmitter &emitter, Value indices,
                             int64_t batchAxes) {
  Extents extents = getExtents(indices);
  int64_t last = extents.size() - 1;
  extents[last] = emitter.builder.getAffineConstantExpr(1);
  auto type = makeTensorType(extents, getElementTypeOrSelf(indices));
  SmallVector<Value> parts;
  for (int64_t axis = 0; axis < batchAxes; ++axis)
    parts.push_back(emitter.emit<IotaOp>(type, axis));
  parts.push_back(indices);
  return parts.size() == 1 ? indices : emitter.emit<ConcatOp>(parts, last);
}

LogicalResult GatherNdOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value tuples = addBatchIndices(emitter, getIndices(), getBatchDims());
  gradients.add(getX(), emitter.emit<ScatterNdOp>(
                            emitter.splat(getX(), 0.0), tuples,
                            gradients.get(getResult()), ScatterKind::add));
  return success();
}

static LogicalResult checkScatter(Operation *op, ScatterKind kind) {
  if (kind == ScatterKind::none || kind == ScatterKind::add)
    return success();
  return op->emitOpError("of kind ")
         << stringifyScatterKind(kind) << " has no derivative";
}

/// Elements that were replaced have no gradient.
LogicalResult ScatterElementsOp::emitGradients(Gradients &gradients) {
  if (failed(checkScatter(*this, getKind())))
    return failure();
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  bool isAdd = getKind() == ScatterKind::add;
  if (gradients.wants(getX()))
    gradients.add(getX(), isAdd ? gradient
                                : emitter.emit<ScatterElementsOp>(
                                      gradient, getIndices(),
                                      emitter.splat(getUpdates(), 0.0),
                                      getAxis(), ScatterKind::none));
  if (gradients.wants(getUpdates()))
    gradients.add(getUpdates(), emitter.emit<GatherElementsOp>(
                                    gradient, getIndices(), getAxis()));
  return success();
}

LogicalResult ScatterNdOp::emitGradients(Gradients &gradients) {
  if (failed(checkScatter(*this, getKind())))
    return failure();
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  bool isAdd = getKind() == ScatterKind::add;
  if (gradients.wants(getX()))
    gradients.add(getX(), isAdd ? gradient
                                : emitter.emit<ScatterNdOp>(
                                      gradient, getIndices(),
                                      emitter.splat(getUpdates(), 0.0),
                                      ScatterKind::none));
  if (gradients.wants(getUpdates()))
    gradients.add(getUpdates(), emitter.emit<GatherNdOp>(gradient, getIndices(),
                                                         /*batch_dims=*/0));
  return success();
}

LogicalResult TopKOp::emitGradients(Gradients &gradients) {
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  gradients.add(getX(),
                emitter.emit<ScatterElementsOp>(
                    emitter.splat(getX(), 0.0), getIndices(),
                    gradients.get(getValues()), getAxis(), ScatterKind::add));
  return success();
}
