#include "dialects/graph/GraphOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Builders.h"

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

/// Reads of an axis without elements cannot be replaced by element 0.
static LogicalResult checkReadable(std::optional<Location> loc,
                                   AffineExpr extent, RankedTensorType result) {
  if (getConstant(extent) != 0 || result.getNumDynamicDims() > 0 ||
      result.getNumElements() == 0)
    return success();
  return emitOptionalError(loc, "reads elements of an empty axis");
}

/// The index stored in `indices` at `at`, inside [0, extent).
static Value emitIndex(OpBuilder &builder, Location loc, ElementSource &source,
                       Value indices, ValueRange at, AffineExpr extent) {
  Value index = source.element(builder, loc, indices, at);
  return source.checkedIndex(builder, loc, index,
                             source.size(builder, loc, extent),
                             /*wrapNegative=*/true);
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

Value GatherOp::emitElement(OpBuilder &builder, Location loc,
                            ValueRange indices, ElementSource &source) {
  int64_t axis = getAxis();
  int64_t count = ::getType(getIndices()).getRank();
  SmallVector<Value> inner(indices.take_front(axis));
  inner.push_back(emitIndex(builder, loc, source, getIndices(),
                            indices.slice(axis, count),
                            getExtent(getX(), axis)));
  llvm::append_range(inner, indices.drop_front(axis + count));
  return source.element(builder, loc, getX(), inner);
}

LogicalResult GatherElementsOp::inferReturnTypes(MLIRContext *,
                                                 std::optional<Location> loc,
                                                 Adaptor adaptor,
                                                 SmallVectorImpl<Type> &types) {
  auto type = ::getType(adaptor.getX()), at = ::getType(adaptor.getIndices());
  if (failed(checkAxis(loc, adaptor.getAxis(), type.getRank())) ||
      failed(checkIndices(loc, adaptor.getIndices())))
    return failure();
  if (type.getRank() != at.getRank())
    return emitOptionalError(loc, "expected indices of rank ", type.getRank());
  // The other axes are read at the result's own indices.
  for (auto [i, extents] :
       llvm::enumerate(llvm::zip_equal(getExtents(type), getExtents(at)))) {
    auto room = getConstant(std::get<0>(extents) - std::get<1>(extents));
    if (int64_t(i) != int64_t(adaptor.getAxis()) && room && *room < 0)
      return emitOptionalError(loc, "axis ", i, " of ", at, " exceeds ", type);
  }
  auto result = withElementType(at, type.getElementType());
  types.push_back(result);
  return checkReadable(loc, getExtents(type)[adaptor.getAxis()], result);
}

Value GatherElementsOp::emitElement(OpBuilder &builder, Location loc,
                                    ValueRange indices, ElementSource &source) {
  SmallVector<Value> inner(indices);
  inner[getAxis()] = emitIndex(builder, loc, source, getIndices(), indices,
                               getExtent(getX(), getAxis()));
  return source.element(builder, loc, getX(), inner);
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
  for (int64_t i = 0; i < count; ++i) {
    SmallVector<Value> at(indices.take_front(outer));
    at.push_back(builder.create<arith::ConstantIndexOp>(loc, i));
    inner.push_back(emitIndex(builder, loc, source, getIndices(), at,
                              getExtent(getX(), batch + i)));
  }
  llvm::append_range(inner, indices.drop_front(outer));
  return source.element(builder, loc, getX(), inner);
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
  if (at.getRank() != type.getRank())
    return emitOptionalError(loc, "expected indices of rank ", type.getRank());
  for (auto [i, extents] :
       llvm::enumerate(llvm::zip_equal(getExtents(type), getExtents(at)))) {
    auto room = getConstant(std::get<0>(extents) - std::get<1>(extents));
    if (int64_t(i) != int64_t(adaptor.getAxis()) && room && *room < 0)
      return emitOptionalError(loc, "axis ", i, " of ", at, " exceeds ", type);
  }
  types.push_back(type);
  return checkReadable(loc, getExtents(type)[adaptor.getAxis()], updates);
}

KernelKind ScatterElementsOp::getKernelKind() { return KernelKind::irregular; }

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

#define GET_OP_CLASSES
#include "dialects/graph/Indexing.cpp.inc"

void GraphDialect::addIndexingOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Indexing.cpp.inc"
      >();
}
