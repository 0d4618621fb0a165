#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

static LogicalResult inferLikeX(Value x, SmallVectorImpl<Type> &types) {
  types.push_back(x.getType());
  return success();
}

static SmallVector<int64_t> getTrailingAxes(Value x, int64_t first) {
  return llvm::to_vector(
      llvm::seq<int64_t>(first, cast<RankedTensorType>(x.getType()).getRank()));
}

static LogicalResult verifyAxis(Operation *op, Value x, int64_t axis) {
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  if (axis < 0 || axis >= rank)
    return op->emitOpError("axis ")
           << axis << " is out of range for rank " << rank;
  return success();
}

/// scale and shift have the extents of x's axes [axis, rank).
static LogicalResult verifyParameters(Operation *op, Value x, int64_t axis,
                                      ArrayRef<Value> parameters) {
  if (failed(verifyAxis(op, x, axis)))
    return failure();
  Extents expected = getExtents(x);
  for (Value parameter : parameters)
    if (parameter &&
        ArrayRef(getExtents(parameter)) != ArrayRef(expected).drop_front(axis))
      return op->emitOpError("expected a parameter with the extents of axes ")
             << axis << " and up of " << x.getType() << ", found "
             << parameter.getType();
  return success();
}

/// Loops over the axes of x, of which `axes` are reduced.
static SmallVector<utils::IteratorType> getRowLoops(Value x,
                                                    ArrayRef<int64_t> axes) {
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  for (int64_t axis : axes)
    kinds[axis] = utils::IteratorType::reduction;
  return kinds;
}

/// The indices of x's axes [first, rank): all for x and the result, those of
/// the row for scale and shift.
static AffineMap getRowMap(Value x, int64_t first) {
  int64_t rank = cast<RankedTensorType>(x.getType()).getRank();
  return AffineMap::getMultiDimIdentityMap(rank, x.getContext())
      .getMinorSubMap(rank - first);
}

// --- softmax -----------------------------------------------------------------

LogicalResult SoftmaxOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferLikeX(adaptor.getX(), types);
}
LogicalResult SoftmaxOp::verify() {
  return verifyAxis(*this, getX(), getAxis());
}
KernelKind SoftmaxOp::getKernelKind() { return KernelKind::row; }
SmallVector<utils::IteratorType> SoftmaxOp::getLoopKinds() {
  return getRowLoops(getX(), int64_t(getAxis()));
}
AffineMap SoftmaxOp::getOperandMap(unsigned) { return getRowMap(getX(), 0); }
AffineMap SoftmaxOp::getResultMap(unsigned) { return getRowMap(getX(), 0); }

FailureOr<SmallVector<Value>> SoftmaxOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  int64_t axis = getAxis();
  Value x = e.widen(getX());
  Value max = e.reduceAndBroadcast(ReduceKind::max, x, axis);
  Value exp = e.emit<ExpOp>(e.emit<SubOp>(x, max));
  // One division a row, not one an element.
  Value sum = e.emit<ReduceOp>(ReduceKind::sum, exp, axis);
  Value scale = e.broadcastBack(e.emit<ReciprocalOp>(sum), x, axis);
  return SmallVector<Value>{
      e.castTo(e.emit<MulOp>(exp, scale), getX().getType())};
}

LogicalResult LogSoftmaxOp::inferReturnTypes(MLIRContext *,
                                             std::optional<Location>,
                                             Adaptor adaptor,
                                             SmallVectorImpl<Type> &types) {
  return inferLikeX(adaptor.getX(), types);
}
LogicalResult LogSoftmaxOp::verify() {
  return verifyAxis(*this, getX(), getAxis());
}
KernelKind LogSoftmaxOp::getKernelKind() { return KernelKind::row; }
SmallVector<utils::IteratorType> LogSoftmaxOp::getLoopKinds() {
  return getRowLoops(getX(), int64_t(getAxis()));
}
AffineMap LogSoftmaxOp::getOperandMap(unsigned) { return getRowMap(getX(), 0); }
AffineMap LogSoftmaxOp::getResultMap(unsigned) { return getRowMap(getX(), 0); }

FailureOr<SmallVector<Value>> LogSoftmaxOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  int64_t axis = getAxis();
  Value x = e.widen(getX());
  Value max = e.reduceAndBroadcast(ReduceKind::max, x, axis);
  Value shifted = e.emit<SubOp>(x, max);
  Value sum = e.emit<ReduceOp>(ReduceKind::sum, e.emit<ExpOp>(shifted), axis);
  Value log = e.broadcastBack(e.emit<LogOp>(sum), x, axis);
  return SmallVector<Value>{
      e.castTo(e.emit<SubOp>(shifted, log), getX().getType())};
}

// --- layer_norm, rms_norm ----------------------------------------------------

LogicalResult LayerNormOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  return inferLikeX(adaptor.getX(), types);
}
LogicalResult LayerNormOp::verify() {
  return verifyParameters(*this, getX(), getAxis(), {getScale(), getShift()});
}
KernelKind LayerNormOp::getKernelKind() { return KernelKind::row; }
SmallVector<utils::IteratorType> LayerNormOp::getLoopKinds() {
  return getRowLoops(getX(), getTrailingAxes(getX(), getAxis()));
}
AffineMap LayerNormOp::getOperandMap(unsigned operand) {
  return getRowMap(getX(), operand == 0 ? 0 : getAxis());
}
AffineMap LayerNormOp::getResultMap(unsigned) { return getRowMap(getX(), 0); }

/// x / sqrt(mean(x^2) + epsilon); one root a row.
static Value normalize(const TensorEmitter &e, Value x, ArrayRef<int64_t> axes,
                       double epsilon) {
  Value variance = e.mean(e.emit<MulOp>(x, x), axes);
  variance = e.emit<AddOp>(variance, e.splat(variance, epsilon));
  return e.emit<MulOp>(x, e.broadcastBack(e.emit<RsqrtOp>(variance), x, axes));
}

static Value applyParameters(const TensorEmitter &e, Value x, Value scale,
                             Value shift) {
  if (scale)
    x = e.emit<MulOp>(x, e.emit<BroadcastOp>(x.getType(), e.widen(scale)));
  if (shift)
    x = e.emit<AddOp>(x, e.emit<BroadcastOp>(x.getType(), e.widen(shift)));
  return x;
}

static Value center(const TensorEmitter &e, Value x, ArrayRef<int64_t> axes) {
  return e.emit<SubOp>(x, e.broadcastBack(e.mean(x, axes), x, axes));
}

FailureOr<SmallVector<Value>> LayerNormOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  SmallVector<int64_t> axes = getTrailingAxes(getX(), getAxis());
  Value centered = center(e, e.widen(getX()), axes);
  Value y = normalize(e, centered, axes, getEpsilon().convertToDouble());
  y = applyParameters(e, y, getScale(), getShift());
  return SmallVector<Value>{e.castTo(y, getX().getType())};
}

/// The axes of a row may lie anywhere then, which this op has no form for: its
/// formula has. Parameters of fewer axes than x come as they are; one of them
/// may be what was transposed.
PermutedResult LayerNormOp::permute(OpBuilder &builder, ValueRange operands,
                                    ArrayRef<int64_t> permutation) {
  if (int64_t(permutation.size()) != getX().getType().getRank())
    return {};
  TensorEmitter e(builder, getLoc());
  SmallVector<int64_t> places = invertPermutationVector(permutation), axes;
  for (int64_t axis : getTrailingAxes(getX(), getAxis()))
    axes.push_back(places[axis]);
  llvm::sort(axes);
  Value x = operands.front(), centered = center(e, e.widen(x), axes);
  Value y = normalize(e, centered, axes, getEpsilon().convertToDouble());
  auto permuteParameter = [&](Value parameter) -> Value {
    int64_t missing = getAxis();
    if (!parameter || missing == 0)
      return parameter;
    Extents extents(missing, builder.getAffineConstantExpr(1));
    llvm::append_range(extents, getExtents(parameter));
    return e.emit<TransposeOp>(e.reshape(parameter, extents), permutation);
  };
  operands = operands.drop_front();
  Value scale = getScale() ? operands.front() : Value();
  Value shift = getShift() ? operands.back() : Value();
  y = applyParameters(e, y, permuteParameter(scale), permuteParameter(shift));
  return {e.castTo(y, cast<RankedTensorType>(x.getType())),
          llvm::to_vector(permutation)};
}

LogicalResult RmsNormOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  return inferLikeX(adaptor.getX(), types);
}
LogicalResult RmsNormOp::verify() {
  return verifyParameters(*this, getX(), getAxis(), {getScale()});
}
KernelKind RmsNormOp::getKernelKind() { return KernelKind::row; }
SmallVector<utils::IteratorType> RmsNormOp::getLoopKinds() {
  return getRowLoops(getX(), getTrailingAxes(getX(), getAxis()));
}
AffineMap RmsNormOp::getOperandMap(unsigned operand) {
  return getRowMap(getX(), operand == 0 ? 0 : getAxis());
}
AffineMap RmsNormOp::getResultMap(unsigned) { return getRowMap(getX(), 0); }

FailureOr<SmallVector<Value>> RmsNormOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  SmallVector<int64_t> axes = getTrailingAxes(getX(), getAxis());
  Value y = normalize(e, e.widen(getX()), axes, getEpsilon().convertToDouble());
  y = applyParameters(e, y, getScale(), nullptr);
  return SmallVector<Value>{e.castTo(y, getX().getType())};
}

// --- batch_norm --------------------------------------------------------------

LogicalResult BatchNormOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  return inferLikeX(adaptor.getX(), types);
}

LogicalResult BatchNormOp::verify() {
  RankedTensorType type = getX().getType();
  if (type.getRank() < 2)
    return emitOpError("expected x of rank 2 or more, found ") << type;
  auto expected = makeTensorType(getExtent(getX(), 1), type.getElementType());
  for (Value parameter : getOperands().drop_front())
    if (parameter.getType() != expected)
      return emitOpError("expected one value a channel of ")
             << type << ", found " << parameter.getType();
  return success();
}

FailureOr<SmallVector<Value>> BatchNormOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  Value variance = getVariance();
  Value epsilon = e.splat(variance, getEpsilon().convertToDouble());
  Value scale = e.emit<DivOp>(getScale(),
                              e.emit<SqrtOp>(e.emit<AddOp>(variance, epsilon)));
  Value shift = e.emit<SubOp>(getShift(), e.emit<MulOp>(getMean(), scale));
  Value scaled = e.emit<MulOp>(getX(), e.alongChannels(scale, getX()));
  return SmallVector<Value>{
      e.emit<AddOp>(scaled, e.alongChannels(shift, getX()))};
}

// --- batch_statistics --------------------------------------------------------

LogicalResult
BatchStatisticsOp::inferReturnTypes(MLIRContext *, std::optional<Location> loc,
                                    Adaptor adaptor,
                                    SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  if (x.getRank() < 2)
    return emitOptionalError(loc, "expected x of rank 2 or more, found ", x);
  types.assign(
      2, makeTensorType(getExtent(adaptor.getX(), 1), x.getElementType()));
  return success();
}

/// The first of the last axes of x, [b, c, ...], along which a channel has as
/// many elements as are worth a part of their own: few enough to stay in a
/// cache. The rank if there is no second part.
static int64_t findPartAxis(RankedTensorType x) {
  constexpr int64_t kLeast = 24;
  int64_t count = 1, axis = x.getRank();
  while (axis > 2 && count < kLeast && x.hasStaticShape())
    count *= x.getDimSize(--axis);
  bool isAll = axis <= 2 && x.getDimSize(0) == 1;
  return count < kLeast || isAll ? x.getRank() : axis;
}

/// Parts of a channel have means and squares of distances from these, all of
/// which one kernel finds; the parts' own are combined as by Chan, Golub and
/// LeVeque (Algorithms for computing the sample variance, 1983).
FailureOr<SmallVector<Value>> BatchStatisticsOp::decompose(OpBuilder &builder) {
  TensorEmitter e(builder, getLoc());
  int64_t rank = getX().getType().getRank(),
          first = findPartAxis(getX().getType());
  SmallVector<int64_t> axes = {0};
  for (int64_t axis = 2; axis < first; ++axis)
    axes.push_back(axis);
  Value part = getX(), squares;
  if (first < rank) {
    auto inner = llvm::to_vector(llvm::seq<int64_t>(first, rank));
    part = e.mean(getX(), inner);
    Value centered =
        e.emit<SubOp>(getX(), e.broadcastBack(part, getX(), inner));
    squares = e.mean(e.emit<MulOp>(centered, centered), inner);
  }
  Value mean = e.mean(part, axes);
  Value centered = e.emit<SubOp>(part, e.alongChannels(mean, part));
  Value square = e.emit<MulOp>(centered, centered);
  Value variance =
      e.mean(squares ? e.emit<AddOp>(squares, square) : square, axes);
  return SmallVector<Value>{mean, variance};
}

#define GET_OP_CLASSES
#include "dialects/graph/Normalization.cpp.inc"

void GraphDialect::addNormalizationOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Normalization.cpp.inc"
      >();
}
