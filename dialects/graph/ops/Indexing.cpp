#include "dialects/graph/Gathers.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tcc::graph;

static RankedTensorType getType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

static LogicalResult checkAxis(std::optional<Location> loc, int64_t axis,
                               int64_t rank) {
  if (axis >= 0 && axis < rank)
    return success();
  return emitOptionalError(loc, "axis ", axis, " is out of range for rank ",
                           rank);
}

static LogicalResult checkIndices(std::optional<Location> loc, Value indices) {
  Type type = getType(indices).getElementType();
  if (type.isSignlessInteger(32) || type.isSignlessInteger(64))
    return success();
  return emitOptionalError(loc, "expected indices of type i32 or i64, found ",
                           type);
}

/// Elements out of range are replaced by element 0 of the axis (`extent`):
/// where there is none, `read` must have no elements.
static LogicalResult checkReadable(std::optional<Location> loc,
                                   AffineExpr extent, RankedTensorType read) {
  if (getConstant(extent) != 0 || read.getNumDynamicDims() > 0 ||
      read.getNumElements() == 0)
    return success();
  return emitOptionalError(loc, "reads elements of an empty axis");
}

/// The same for symbolic extents, as conditions.
static void requireReadable(ArrayRef<AffineExpr> extents, RankedTensorType read,
                            Extents &conditions) {
  Extents readExtents = getExtents(read);
  for (AffineExpr extent : extents)
    if (!getConstant(extent) &&
        llvm::none_of(readExtents, [&](AffineExpr other) {
          return getConstant(other) == 0 || isEqual(other, extent);
        }))
      conditions.push_back(extent - 1);
}

/// `indices` may have at most the extents of `x` but along `axis`.
static LogicalResult checkOtherAxes(std::optional<Location> loc,
                                    RankedTensorType x,
                                    RankedTensorType indices, int64_t axis) {
  if (x.getRank() != indices.getRank())
    return emitOptionalError(loc, "expected indices of rank ", x.getRank());
  for (auto [i, extents] :
       llvm::enumerate(llvm::zip_equal(getExtents(x), getExtents(indices)))) {
    auto room = getConstant(std::get<0>(extents) - std::get<1>(extents));
    if (int64_t(i) != axis && room && *room < 0)
      return emitOptionalError(loc, "axis ", i, " of ", indices, " exceeds ",
                               x);
  }
  return success();
}

/// The index stored in `indices` at `at`, inside [0, extent).
static Value emitIndex(OpBuilder &builder, Location loc, ElementSource &source,
                       Value indices, ValueRange at, AffineExpr extent,
                       bool wrapNegative = true) {
  Value index = source.element(builder, loc, indices, at);
  return source.checkedIndex(builder, loc, index,
                             source.size(builder, loc, extent), wrapNegative);
}

/// The indices of `x` that are the indices of `indices` itself, [at], but along
/// `axis`: all of them lie inside, or set the fault flag.
static SmallVector<Value> emitOwnIndices(OpBuilder &builder, Location loc,
                                         ElementSource &source, Value x,
                                         Value indices, int64_t axis,
                                         ValueRange at) {
  SmallVector<Value> own(at);
  for (auto [i, index] : llvm::enumerate(own)) {
    AffineExpr extent = getExtent(x, i);
    auto room = getConstant(extent - getExtent(indices, i));
    if (int64_t(i) == axis || (room && *room >= 0))
      continue;
    Value number =
        builder.create<arith::IndexCastOp>(loc, builder.getI64Type(), index);
    index = source.checkedIndex(builder, loc, number,
                                source.size(builder, loc, extent),
                                /*wrapNegative=*/false);
  }
  return own;
}

/// The tuple of indices at `at`, each inside its extent.
static SmallVector<Value> emitTuple(OpBuilder &builder, Location loc,
                                    ElementSource &source, Value indices,
                                    ValueRange at,
                                    ArrayRef<AffineExpr> extents) {
  SmallVector<Value> tuple, place(at);
  place.emplace_back();
  for (auto [i, extent] : llvm::enumerate(extents)) {
    place.back() = builder.create<arith::ConstantIndexOp>(loc, i);
    tuple.push_back(emitIndex(builder, loc, source, indices, place, extent));
  }
  return tuple;
}

// --- gather

LogicalResult GatherOp::inferReturnTypes(MLIRContext *,
                                         std::optional<Location> loc,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX());
  int64_t axis = adaptor.getAxis();
  if (failed(checkAxis(loc, axis, type.getRank())) ||
      failed(checkIndices(loc, adaptor.getIndices())))
    return failure();
  Extents from = getExtents(type), to(ArrayRef(from).take_front(axis));
  llvm::append_range(to, getExtents(adaptor.getIndices()));
  llvm::append_range(to, ArrayRef(from).drop_front(axis + 1));
  auto result = makeTensorType(to, type.getElementType());
  types.push_back(result);
  return checkReadable(loc, from[axis], result);
}

Value tcc::graph::makeTuples(OpBuilder &builder, Location loc, Value indices) {
  Extents extents = getExtents(indices);
  extents.push_back(builder.getAffineConstantExpr(1));
  return TensorEmitter(builder, loc).reshape(indices, extents);
}

Value tcc::graph::addBatchIndices(OpBuilder &builder, Location loc,
                                  Value tuples, int64_t batchAxes) {
  Extents extents = getExtents(tuples);
  int64_t last = extents.size() - 1;
  extents[last] = builder.getAffineConstantExpr(1);
  auto type = makeTensorType(extents, getElementTypeOrSelf(tuples));
  SmallVector<Value> parts;
  for (int64_t axis = 0; axis < batchAxes; ++axis)
    parts.push_back(builder.create<IotaOp>(loc, type, axis));
  parts.push_back(tuples);
  return parts.size() == 1 ? tuples
                           : builder.create<ConcatOp>(loc, parts, last);
}

std::optional<SmallVector<int64_t>> tcc::graph::findSlices(GatherOp op) {
  auto extent = getConstant(getExtent(op.getX(), op.getAxis()));
  Value indices = op.getIndices();
  // One index in another shape.
  auto type = cast<RankedTensorType>(indices.getType());
  bool isOne = type.hasStaticShape() && type.getNumElements() == 1;
  while (isOne &&
         isa_and_present<ReshapeOp, BroadcastOp>(indices.getDefiningOp()))
    indices = indices.getDefiningOp()->getOperand(0);
  DenseIntElementsAttr constant;
  if (!matchPattern(indices, m_Constant(&constant)))
    return std::nullopt;
  SmallVector<int64_t> slices;
  for (const APInt &index : constant.getValues<APInt>())
    slices.push_back(index.getSExtValue());
  for (int64_t &slice : slices) {
    slice += extent && slice < 0 && !op.getNonnegative() ? *extent : 0;
    if (!extent || slice < 0 || slice >= *extent)
      return std::nullopt;
  }
  return slices;
}

Value tcc::graph::emitSliceIndex(OpBuilder &builder, Location loc, GatherOp op,
                                 ValueRange at, ElementSource &source) {
  return emitIndex(builder, loc, source, op.getIndices(), at,
                   getExtent(op.getX(), op.getAxis()),
                   /*wrapNegative=*/!op.getNonnegative());
}

std::optional<unsigned> tcc::graph::findGatheredLoop(const ProductView &view,
                                                     const ProductSide &side,
                                                     Value tensor) {
  auto gather = tensor.getDefiningOp<GatherOp>();
  if (!gather || side.panels || side.padded > 0 ||
      ::getType(gather.getIndices()).getRank() != 1)
    return std::nullopt;
  ArrayRef<AffineExpr> indices = side.map.getResults();
  auto loop = dyn_cast<AffineDimExpr>(indices[gather.getAxis()]);
  if (!loop || loop.getPosition() >= view.batch.size() ||
      llvm::count_if(indices, [&](AffineExpr index) {
        return index.isFunctionOfDim(loop.getPosition());
      }) != 1)
    return std::nullopt;
  return loop.getPosition();
}

Value GatherOp::emitElement(OpBuilder &builder, Location loc,
                            ValueRange indices, ElementSource &source) {
  int64_t axis = getAxis();
  int64_t count = ::getType(getIndices()).getRank();
  SmallVector<Value> inner(indices.take_front(axis));
  inner.push_back(
      emitSliceIndex(builder, loc, *this, indices.slice(axis, count), source));
  llvm::append_range(inner, indices.drop_front(axis + count));
  return source.element(builder, loc, getX(), inner);
}

Extents GatherOp::getNonNegativeSizes() {
  Extents conditions;
  requireReadable(getExtent(getX(), getAxis()), ::getType(getResult()),
                  conditions);
  return conditions;
}

LogicalResult GatherElementsOp::inferReturnTypes(MLIRContext *,
                                                 std::optional<Location> loc,
                                                 Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX()), at = ::getType(adaptor.getIndices());
  if (failed(checkAxis(loc, adaptor.getAxis(), type.getRank())) ||
      failed(checkIndices(loc, adaptor.getIndices())) ||
      failed(checkOtherAxes(loc, type, at, adaptor.getAxis())))
    return failure();
  auto result = withElementType(at, type.getElementType());
  types.push_back(result);
  return checkReadable(loc, getExtents(type)[adaptor.getAxis()], result);
}

Value GatherElementsOp::emitElement(OpBuilder &builder, Location loc,
                                    ValueRange indices, ElementSource &source) {
  SmallVector<Value> inner = emitOwnIndices(builder, loc, source, getX(),
                                            getIndices(), getAxis(), indices);
  inner[getAxis()] = emitIndex(builder, loc, source, getIndices(), indices,
                               getExtent(getX(), getAxis()));
  return source.element(builder, loc, getX(), inner);
}

Extents GatherElementsOp::getNonNegativeSizes() {
  Extents conditions;
  requireReadable(getExtents(getX()), ::getType(getResult()), conditions);
  return conditions;
}

/// The conditions of tuples of `count` indices into `x` after `batch` axes.
static Extents getTupleConditions(Value x, int64_t batch, int64_t count,
                                  Value read) {
  Extents conditions;
  requireReadable(ArrayRef(getExtents(x)).slice(batch, count), getType(read),
                  conditions);
  return conditions;
}

/// The number of indices in a tuple: the constant extent of the last axis.
static std::optional<int64_t> getTupleSize(Value indices) {
  auto type = getType(indices);
  if (type.getRank() == 0 || type.isDynamicDim(type.getRank() - 1))
    return std::nullopt;
  return type.getShape().back();
}

LogicalResult GatherNdOp::inferReturnTypes(MLIRContext *,
                                           std::optional<Location> loc,
                                           Adaptor adaptor,
                                           SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX()), at = ::getType(adaptor.getIndices());
  int64_t batch = adaptor.getBatchDims();
  auto count = getTupleSize(adaptor.getIndices());
  if (failed(checkIndices(loc, adaptor.getIndices())))
    return failure();
  if (batch < 0 || batch >= at.getRank() || !count ||
      batch + *count > type.getRank())
    return emitOptionalError(loc, "expected index tuples for ", type, " after ",
                             batch, " batch axes, found ", at);
  Extents from = getExtents(type), to(ArrayRef(getExtents(at)).drop_back());
  for (int64_t i = 0; i < batch; ++i)
    if (!isEqual(from[i], to[i]))
      return emitOptionalError(loc, "batch axis ", i, " of ", at,
                               " differs from ", type);
  llvm::append_range(to, ArrayRef(from).drop_front(batch + *count));
  auto result = makeTensorType(to, type.getElementType());
  types.push_back(result);
  for (int64_t i = 0; i < *count; ++i)
    if (failed(checkReadable(loc, from[batch + i], result)))
      return failure();
  return success();
}

Value GatherNdOp::emitElement(OpBuilder &builder, Location loc,
                              ValueRange indices, ElementSource &source) {
  int64_t batch = getBatchDims();
  int64_t count = *getTupleSize(getIndices());
  int64_t outer = ::getType(getIndices()).getRank() - 1;
  SmallVector<Value> inner(indices.take_front(batch));
  llvm::append_range(
      inner,
      emitTuple(builder, loc, source, getIndices(), indices.take_front(outer),
                ArrayRef(getExtents(getX())).slice(batch, count)));
  llvm::append_range(inner, indices.drop_front(outer));
  return source.element(builder, loc, getX(), inner);
}

Extents GatherNdOp::getNonNegativeSizes() {
  return getTupleConditions(getX(), getBatchDims(), *getTupleSize(getIndices()),
                            getResult());
}

// --- scatter

LogicalResult
ScatterElementsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                    Adaptor adaptor,
                                    SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX()), at = ::getType(adaptor.getIndices());
  if (failed(checkAxis(loc, adaptor.getAxis(), type.getRank())) ||
      failed(checkIndices(loc, adaptor.getIndices())))
    return failure();
  auto updates = withElementType(at, type.getElementType());
  if (adaptor.getUpdates().getType() != updates)
    return emitOptionalError(loc, "expected updates of type ", updates);
  if (failed(checkOtherAxes(loc, type, at, adaptor.getAxis())))
    return failure();
  types.push_back(type);
  return checkReadable(loc, getExtents(type)[adaptor.getAxis()], updates);
}

KernelKind ScatterElementsOp::getKernelKind() { return KernelKind::irregular; }

Extents ScatterElementsOp::getNonNegativeSizes() {
  Extents conditions;
  requireReadable(getExtents(getX()), ::getType(getUpdates()), conditions);
  return conditions;
}

SmallVector<int64_t> ScatterElementsOp::getScatteredAxes() {
  return {int64_t(getAxis())};
}

SmallVector<Value> ScatterElementsOp::emitDestination(OpBuilder &builder,
                                                      Location loc,
                                                      ValueRange at,
                                                      ElementSource &source) {
  SmallVector<Value> destination =
      emitOwnIndices(builder, loc, source, getX(), getIndices(), getAxis(), at);
  destination[getAxis()] = emitIndex(builder, loc, source, getIndices(), at,
                                     getExtent(getX(), getAxis()));
  return destination;
}

LogicalResult ScatterNdOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location> loc,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX()), at = ::getType(adaptor.getIndices());
  auto count = getTupleSize(adaptor.getIndices());
  if (failed(checkIndices(loc, adaptor.getIndices())))
    return failure();
  if (!count || *count > type.getRank())
    return emitOptionalError(loc, "expected index tuples for ", type,
                             ", found ", at);
  Extents from = getExtents(type), to(ArrayRef(getExtents(at)).drop_back());
  llvm::append_range(to, ArrayRef(from).drop_front(*count));
  auto updates = makeTensorType(to, type.getElementType());
  if (adaptor.getUpdates().getType() != updates)
    return emitOptionalError(loc, "expected updates of type ", updates);
  types.push_back(type);
  for (int64_t i = 0; i < *count; ++i)
    if (failed(checkReadable(loc, from[i], updates)))
      return failure();
  return success();
}

KernelKind ScatterNdOp::getKernelKind() { return KernelKind::irregular; }

Extents ScatterNdOp::getNonNegativeSizes() {
  return getTupleConditions(getX(), 0, *getTupleSize(getIndices()),
                            getUpdates());
}

SmallVector<int64_t> ScatterNdOp::getScatteredAxes() {
  return llvm::to_vector(llvm::seq<int64_t>(*getTupleSize(getIndices())));
}

SmallVector<Value> ScatterNdOp::emitDestination(OpBuilder &builder,
                                                Location loc, ValueRange at,
                                                ElementSource &source) {
  int64_t outer = ::getType(getIndices()).getRank() - 1;
  SmallVector<Value> destination = emitTuple(
      builder, loc, source, getIndices(), at.take_front(outer),
      ArrayRef(getExtents(getX())).take_front(*getTupleSize(getIndices())));
  llvm::append_range(destination, at.drop_front(outer));
  return destination;
}

// --- top_k

LogicalResult TopKOp::inferReturnTypes(MLIRContext *context,
                                       std::optional<Location> loc,
                                       Adaptor adaptor,
                                       SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX());
  int64_t axis = adaptor.getAxis(), k = adaptor.getK();
  if (failed(checkAxis(loc, axis, type.getRank())))
    return failure();
  Extents extents = getExtents(type);
  auto extent = getConstant(extents[axis]);
  if (k < 0 || (extent && k > *extent))
    return emitOptionalError(loc, "k = ", k, " exceeds axis ", axis, " of ",
                             type);
  extents[axis] = getAffineConstantExpr(k, context);
  types.push_back(makeTensorType(extents, type.getElementType()));
  types.push_back(makeTensorType(extents, IntegerType::get(context, 64)));
  return success();
}

KernelKind TopKOp::getKernelKind() { return KernelKind::irregular; }

Extents TopKOp::getNonNegativeSizes() {
  return {getExtent(getX(), getAxis()) - int64_t(getK())};
}

// --- find

LogicalResult FindOp::verify() {
  auto isVector = [](Value value, unsigned width) {
    auto type = ::getType(value);
    return type.getRank() == 1 && type.getElementType().isInteger(width);
  };
  if (isVector(getX(), 1) && isVector(getPositions(), 64))
    return success();
  return emitOpError("expected vectors of i1 and i64, found ")
         << getX().getType() << " and " << getPositions().getType();
}

KernelKind FindOp::getKernelKind() { return KernelKind::irregular; }
bool FindOp::readsOnce(unsigned) { return true; }

// --- choose_boxes

LogicalResult ChooseBoxesOp::verify() {
  Extents borders = getExtents(getBorders()), scores = getExtents(getScores());
  Extents boxes = getExtents(getBoxes());
  if (borders.size() != 3 || scores.size() != 3 || boxes.size() != 3 ||
      getExtents(getCandidates()) != scores || getConstant(borders[1]) != 4 ||
      borders[0] != scores[0] || borders[2] != scores[2] ||
      boxes[0] != scores[0] || boxes[1] != scores[1])
    return emitOpError("expected [batch, 4, box] and [batch, class, box], "
                       "found ")
           << getBorders().getType() << " and " << getScores().getType();
  auto isOf = [](Value value, auto check) {
    return check(getElementTypeOrSelf(value));
  };
  auto isF32 = [](Type type) { return type.isF32(); };
  auto isI64 = [](Type type) { return type.isInteger(64); };
  if (!isOf(getBorders(), isF32) || !isOf(getScores(), isF32) ||
      !isOf(getThreshold(), isF32) || !isOf(getLimit(), isI64) ||
      !isOf(getBoxes(), isI64) ||
      !getElementTypeOrSelf(getCandidates()).isInteger(1))
    return emitOpError("has an operand of another element type");
  if (::getType(getLimit()).getRank() != 0 ||
      ::getType(getThreshold()).getRank() != 0)
    return emitOpError("expected a scalar limit and threshold");
  return success();
}

KernelKind ChooseBoxesOp::getKernelKind() { return KernelKind::irregular; }
bool ChooseBoxesOp::readsOnce(unsigned operand) {
  return operand == 1 || operand == 2;
}

#define GET_OP_CLASSES
#include "dialects/graph/Indexing.cpp.inc"

void GraphDialect::addIndexingOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Indexing.cpp.inc"
      >();
}
