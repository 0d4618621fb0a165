#include "dialects/graph/ops/Window.h"
#include "dialects/graph/ops/WindowGradients.h"

#include "dialects/graph/interfaces/Permute.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

static ArrayRef<int64_t> getInnerExtents(RankedTensorType type) {
  return type.getShape().drop_front().drop_back();
}

// --- The op ------------------------------------------------------------------

LogicalResult ConvFilterGradientOp::inferReturnTypes(
    MLIRContext *context, std::optional<Location> loc, Adaptor adaptor,
    SmallVectorImpl<Type> &types) {
  auto x = cast<RankedTensorType>(adaptor.getX().getType());
  auto gradient = cast<RankedTensorType>(adaptor.getGradient().getType());
  if (!x.hasStaticShape() || !gradient.hasStaticShape())
    return emitOptionalError(loc, "expected constant extents");
  if (x.getRank() < 3 || gradient.getRank() != x.getRank())
    return emitOptionalError(loc, "expected operands of one rank, 3 or more");
  if (adaptor.getGroups() < 1)
    return emitOptionalError(loc, "expected at least one group");
  SmallVector<int64_t> shape = {gradient.getShape().back()};
  llvm::append_range(shape, adaptor.getWindow());
  shape.push_back(x.getShape().back() / int64_t(adaptor.getGroups()));
  types.push_back(RankedTensorType::get(shape, x.getElementType()));
  return success();
}

bool ConvFilterGradientOp::isCompatibleReturnTypes(TypeRange inferred,
                                                   TypeRange found) {
  return ConvOp::isCompatibleReturnTypes(inferred, found);
}

Precision ConvFilterGradientOp::getPrecision() { return Precision::narrow; }

LogicalResult ConvFilterGradientOp::verify() {
  RankedTensorType x = getX().getType(), gradient = getGradient().getType();
  size_t spatial = x.getRank() - 2;
  for (ArrayRef<int64_t> values :
       {getWindow(), getStrides(), getPadLow(), getDilations()})
    if (values.size() != spatial)
      return emitOpError("expected ")
             << spatial << " window entries, found " << values.size();
  for (size_t i = 0; i < spatial; ++i)
    if (getWindow()[i] < 1 || getStrides()[i] < 1 || getDilations()[i] < 1)
      return emitOpError("expected positive window, stride and dilation");
  if (x.getElementType() != gradient.getElementType() ||
      x.getShape().front() != gradient.getShape().front())
    return emitOpError("expected operands of one type and batch");
  int64_t groups = getGroups();
  if (x.getShape().back() % groups || gradient.getShape().back() % groups)
    return emitOpError("cannot split the channels into ")
           << groups << " groups";
  return success();
}

// Loops: the axes of the result, then the batch and the axes of the gradient.

SmallVector<utils::IteratorType> ConvFilterGradientOp::getLoopKinds() {
  int64_t rank = getX().getType().getRank();
  SmallVector<utils::IteratorType> kinds(rank, utils::IteratorType::parallel);
  kinds.append(rank - 1, utils::IteratorType::reduction);
  return kinds;
}

AffineMap ConvFilterGradientOp::getOperandMap(unsigned operand) {
  int64_t rank = getX().getType().getRank();
  auto loop = [&](int64_t i) { return getAffineDimExpr(i, getContext()); };
  AffineExpr filter = loop(0), channel = loop(rank - 1);
  SmallVector<AffineExpr> results = {loop(rank)};
  for (int64_t i = 0, e = getWindow().size(); i < e; ++i)
    results.push_back(operand == 1 ? loop(rank + 1 + i)
                                   : loop(rank + 1 + i) * getStrides()[i] +
                                         loop(1 + i) * getDilations()[i] -
                                         getPadLow()[i]);
  if (int64_t groups = getGroups(); groups > 1)
    channel = filter.floorDiv(getType().getDimSize(0) / groups) *
                  getType().getShape().back() +
              channel;
  results.push_back(operand == 1 ? filter : channel);
  return AffineMap::get(2 * rank - 1, 0, results, getContext());
}

AffineMap ConvFilterGradientOp::getResultMap(unsigned) {
  int64_t rank = getX().getType().getRank();
  return AffineMap::getMultiDimIdentityMap(2 * rank - 1, getContext())
      .getMajorSubMap(rank);
}

bool ConvFilterGradientOp::slides() {
  return areNarrow(getGroups(), getType().getShape().back(),
                   getType().getDimSize(0) / int64_t(getGroups()),
                   getElementTypeOrSelf(getX()));
}

KernelKind ConvFilterGradientOp::getKernelKind() {
  return slides() ? KernelKind::window_sums : KernelKind::contraction;
}

/// A product for each group: rows are its filters, columns taps and its
/// channels, and the depth the positions of the gradient in all images.
ProductView ConvFilterGradientOp::getProduct() {
  MLIRContext *context = getContext();
  ArrayRef<int64_t> shape = getType().getShape();
  int64_t spatial = getWindow().size(), groups = getGroups();
  int64_t perGroup = shape.front() / groups, channels = shape.back();
  auto loop = [&](int64_t i) { return getAffineDimExpr(i, context); };
  Extents result = getExtents(getResult());
  ProductView view;
  view.batch = {getAffineConstantExpr(groups, context)};
  view.rows = {getAffineConstantExpr(perGroup, context)};
  view.columns.assign(result.begin() + 1, result.end());
  view.depth = getExtents(getGradient());
  view.depth.pop_back();
  int64_t image = 3 + spatial;
  AffineExpr filter = loop(0) * perGroup + loop(1), channel = loop(2 + spatial);
  SmallVector<AffineExpr> from = {loop(image)}, behind = {loop(image)},
                          to = {filter};
  for (int64_t i = 0; i < spatial; ++i) {
    from.push_back(loop(image + 1 + i) * getStrides()[i] +
                   loop(2 + i) * getDilations()[i] - getPadLow()[i]);
    behind.push_back(loop(image + 1 + i));
    to.push_back(loop(2 + i));
  }
  from.push_back(loop(0) * channels + channel);
  behind.push_back(filter);
  to.push_back(channel);
  auto mapTo = [&](ArrayRef<AffineExpr> indices) {
    return AffineMap::get(view.countLoops(), 0, indices, context);
  };
  view.lhs = {1, mapTo(behind)};
  view.rhs = {0, mapTo(from), 1, spatial};
  view.result = mapTo(to);
  return view;
}

// --- As other ops --------------------------------------------------------

/// True if each output has one pixel of x.
static bool isOfPixels(ConvFilterGradientOp op) {
  ArrayRef<int64_t> from = getInnerExtents(op.getX().getType());
  ArrayRef<int64_t> to = getInnerExtents(op.getGradient().getType());
  for (size_t i = 0; i < from.size(); ++i)
    if (op.getWindow()[i] != 1 || op.getPadLow()[i] != 0 || to[i] < 1 ||
        (to[i] - 1) * op.getStrides()[i] >= from[i])
      return false;
  return op.getGroups() == 1 && getType(op.getResult()).getNumElements() > 0;
}

/// The gradient of pixels is a matrix product; that of wide groups takes fewer
/// rows as a convolution over the batch.
bool ConvFilterGradientOp::isBetterDecomposed() {
  return (getGroups() > 1 && !slides()) || isOfPixels(*this);
}

/// [batch, groups * channels, ...] as [channels, groups * batch, ...].
static Value batchToChannels(const TensorEmitter &emitter, Value x,
                             int64_t groups) {
  auto type = getType(x);
  ArrayRef<int64_t> shape = type.getShape();
  SmallVector<int64_t> split = {shape[0], groups, shape[1] / groups};
  llvm::append_range(split, shape.drop_front(2));
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, split.size()));
  std::swap(order[0], order[2]);
  SmallVector<int64_t> joined = {shape[1] / groups, groups * shape[0]};
  llvm::append_range(joined, shape.drop_front(2));
  Value grouped = emitter.emit<ReshapeOp>(
      RankedTensorType::get(split, type.getElementType()), x);
  return emitter.emit<ReshapeOp>(
      RankedTensorType::get(joined, type.getElementType()),
      emitter.emit<TransposeOp>(grouped, order));
}

static Value swapLeadingAxes(const TensorEmitter &emitter, Value x) {
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, getType(x).getRank()));
  std::swap(order[0], order[1]);
  return emitter.emit<TransposeOp>(x, order);
}

/// Borders of less than nothing are elements that no window reads.
static Value crop(const TensorEmitter &emitter, Value x,
                  SmallVectorImpl<int64_t> &low,
                  SmallVectorImpl<int64_t> &high) {
  SmallVector<int64_t> none(getType(x).getRank(), 0), before(none), after(none);
  bool isNeeded = false;
  for (size_t i = 0; i < low.size(); ++i) {
    before[i + 2] = std::min<int64_t>(low[i], 0);
    after[i + 2] = std::min<int64_t>(high[i], 0);
    low[i] -= before[i + 2];
    high[i] -= after[i + 2];
    isNeeded |= before[i + 2] || after[i + 2];
  }
  if (!isNeeded)
    return x;
  auto scalar = RankedTensorType::get({}, getElementTypeOrSelf(x));
  return emitter.emit<PadOp>(x, emitter.splat(scalar, 0.0), before, after, none,
                             PadMode::constant);
}

/// The pixels that outputs have, [batch, ..., channels].
static Value takePixels(const TensorEmitter &emitter, ConvFilterGradientOp op) {
  auto type = getType(op.getX());
  SmallVector<int64_t> shape(getType(op.getGradient()).getShape());
  shape.back() = type.getShape().back();
  if (type.getShape() == ArrayRef<int64_t>(shape))
    return op.getX();
  SmallVector<int64_t> steps = {1};
  llvm::append_range(steps, op.getStrides());
  steps.push_back(1);
  SmallVector<AffineExpr> starts(shape.size(),
                                 emitter.builder.getAffineConstantExpr(0));
  return emitter.emit<SliceOp>(
      RankedTensorType::get(shape, type.getElementType()), op.getX(),
      makeSizeMap(starts, op.getContext()), steps);
}

/// [rows, channels] of all pixels.
static Value joinPixels(const TensorEmitter &emitter, Value x) {
  auto type = getType(x);
  int64_t channels = type.getShape().back();
  return emitter.emit<ReshapeOp>(
      RankedTensorType::get({type.getNumElements() / channels, channels},
                            type.getElementType()),
      x);
}

/// gradient^T x, both matrices with a row a pixel.
static Value multiplyPixels(const TensorEmitter &emitter,
                            ConvFilterGradientOp op) {
  Value product = emitter.emit<MatmulOp>(
      joinPixels(emitter, op.getGradient()),
      joinPixels(emitter, takePixels(emitter, op)), /*transposeLhs=*/true,
      /*transposeRhs=*/false, op.getType().getElementType());
  return emitter.emit<ReshapeOp>(op.getType(), product);
}

/// A convolution over the batch: the gradient is the filter, its extents are
/// the window, strides and dilations change places.
FailureOr<SmallVector<Value>>
ConvFilterGradientOp::decompose(OpBuilder &builder) {
  TensorEmitter emitter(builder, getLoc());
  if (isOfPixels(*this))
    return SmallVector<Value>{multiplyPixels(emitter, *this)};
  ArrayRef<int64_t> from = getInnerExtents(getX().getType());
  ArrayRef<int64_t> to = getInnerExtents(getGradient().getType());
  SmallVector<int64_t> high, low(getPadLow());
  for (size_t i = 0; i < from.size(); ++i)
    high.push_back((getWindow()[i] - 1) * getDilations()[i] +
                   (to[i] - 1) * getStrides()[i] + 1 - from[i] - low[i]);
  auto last = getChannelsLastPermutation(getX().getType().getRank());
  auto first = invertPermutationVector(last);
  int64_t groups = getGroups();
  Value x = emitter.emit<TransposeOp>(getX(), first);
  x = crop(emitter, batchToChannels(emitter, x, groups), low, high);
  Value filter =
      swapLeadingAxes(emitter, emitter.emit<TransposeOp>(getGradient(), first));
  SmallVector<int64_t> shape = {getType().getShape().back(),
                                getType().getDimSize(0)};
  llvm::append_range(shape, getWindow());
  auto type = RankedTensorType::get(shape, getType().getElementType());
  Value result = emitter.emit<ConvOp>(
      type, x, filter, shape[1], groups, to, getDilations(), low, high,
      getStrides(), /*channels_last=*/false, /*packed_filter=*/false,
      /*tf32=*/false, /*zero_taps=*/DenseI64ArrayAttr(),
      /*input_dilations=*/DenseI64ArrayAttr());
  result = swapLeadingAxes(emitter, result);
  return SmallVector<Value>{emitter.emit<TransposeOp>(result, last)};
}
