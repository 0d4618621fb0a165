#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

static RankedTensorType getType(Value tensor) {
  return cast<RankedTensorType>(tensor.getType());
}

/// [batch, channel] extents and the spatial ones of a window op on constants.
static ArrayRef<int64_t> getSpatial(Value tensor) {
  return getType(tensor).getShape().drop_front(2);
}

/// A window op whose gradient is asked for. All spatial extents are constants.
template <typename Op> static LogicalResult checkWindowOp(Op op) {
  if (op.getChannelsLast())
    return op.emitOpError("with channels last has no derivative");
  for (Value tensor : {Value(op.getX()), Value(op.getResult())})
    if (llvm::any_of(getSpatial(tensor), ShapedType::isDynamic))
      return op.emitOpError("of symbolic extents has no derivative");
  return success();
}

namespace {

/// Pads of x, all axes, of which what a window op cannot do itself is a pad op.
struct Padding {
  SmallVector<int64_t> low, high, interior;

  explicit Padding(int64_t rank)
      : low(rank, 0), high(rank, 0), interior(rank, 0) {}

  /// Emits what crops or lies between elements; leaves borders of zeros in
  /// `low` and `high` of the spatial axes, as a window op has them.
  Value apply(const TensorEmitter &emitter, Value x) {
    SmallVector<int64_t> cropLow, cropHigh;
    bool isNeeded = false;
    for (size_t axis = 0; axis < low.size(); ++axis) {
      cropLow.push_back(std::min<int64_t>(low[axis], 0));
      cropHigh.push_back(std::min<int64_t>(high[axis], 0));
      low[axis] -= cropLow.back();
      high[axis] -= cropHigh.back();
      isNeeded |= cropLow.back() || cropHigh.back() || interior[axis];
    }
    low.erase(low.begin(), low.begin() + 2);
    high.erase(high.begin(), high.begin() + 2);
    if (!isNeeded)
      return x;
    auto scalar = RankedTensorType::get({}, getElementTypeOrSelf(x));
    return emitter.emit<PadOp>(x, emitter.splat(scalar, 0.0), cropLow, cropHigh,
                               interior, PadMode::constant);
  }
};

} // namespace

/// The padding of a gradient of `op`'s result on which windows with stride 1
/// meet, at each element of x, those elements that it was read for.
template <typename Op> static Padding padForData(Op op) {
  ArrayRef<int64_t> from = getSpatial(op.getResult());
  ArrayRef<int64_t> to = getSpatial(op.getX());
  Padding padding(getType(op.getX()).getRank());
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t stride = op.getStrides()[i];
    int64_t reach = (op.getWindow()[i] - 1) * op.getDilations()[i];
    int64_t spread = (from[i] - 1) * stride + 1;
    padding.interior[i + 2] = stride - 1;
    padding.low[i + 2] = reach - op.getPadLow()[i];
    padding.high[i + 2] = to[i] - spread - padding.low[i + 2] + reach;
  }
  return padding;
}

static SmallVector<int64_t> makeOnes(size_t count) {
  return SmallVector<int64_t>(count, 1);
}

// --- conv --------------------------------------------------------------------

/// [filters, channels / groups, window...] as [channels, filters / groups,
/// window...], the window turned round.
static Value transposeFilter(const TensorEmitter &emitter, Value filter,
                             int64_t groups) {
  ArrayRef<int64_t> shape = getType(filter).getShape();
  MLIRContext *context = filter.getContext();
  SmallVector<AffineExpr> last;
  SmallVector<int64_t> steps;
  for (auto [axis, extent] : llvm::enumerate(shape)) {
    last.push_back(getAffineConstantExpr(axis < 2 ? 0 : extent - 1, context));
    steps.push_back(axis < 2 ? 1 : -1);
  }
  Value turned = emitter.emit<SliceOp>(filter.getType(), filter,
                                       makeSizeMap(last, context), steps);
  SmallVector<int64_t> split = {groups, shape[0] / groups, shape[1]};
  llvm::append_range(split, shape.drop_front(2));
  SmallVector<int64_t> order =
      llvm::to_vector(llvm::seq<int64_t>(0, split.size()));
  std::swap(order[1], order[2]);
  SmallVector<int64_t> joined = {groups * shape[1], shape[0] / groups};
  llvm::append_range(joined, shape.drop_front(2));
  auto type = getType(filter);
  Value grouped = emitter.emit<ReshapeOp>(
      RankedTensorType::get(split, type.getElementType()), turned);
  return emitter.emit<ReshapeOp>(
      RankedTensorType::get(joined, type.getElementType()),
      emitter.emit<TransposeOp>(grouped, order));
}

static Value convolve(const TensorEmitter &emitter, RankedTensorType type,
                      Value x, Value filter, int64_t filters, int64_t groups,
                      ArrayRef<int64_t> strides, ArrayRef<int64_t> low,
                      ArrayRef<int64_t> high, ArrayRef<int64_t> dilations) {
  return emitter.emit<ConvOp>(type, x, filter, filters, groups,
                              getSpatial(filter), strides, low, high, dilations,
                              /*channels_last=*/false,
                              /*packed_filter=*/false);
}

/// A convolution with stride 1 of the gradient, spread, with the filters turned
/// round.
static Value deriveData(const TensorEmitter &emitter, ConvOp op,
                        Value gradient) {
  Padding padding = padForData(op);
  Value spread = padding.apply(emitter, gradient);
  Value filter = transposeFilter(emitter, op.getFilter(), op.getGroups());
  return convolve(emitter, getType(op.getX()), spread, filter,
                  getType(op.getX()).getDimSize(1), op.getGroups(),
                  makeOnes(getSpatial(op.getX()).size()), padding.low,
                  padding.high, op.getDilations());
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

/// A convolution over the batch: the gradient is the filter, its extents are
/// the window, strides and dilations change places.
static Value deriveFilter(const TensorEmitter &emitter, ConvOp op,
                          Value gradient) {
  ArrayRef<int64_t> from = getSpatial(op.getX());
  ArrayRef<int64_t> to = getSpatial(op.getResult());
  Padding padding(getType(op.getX()).getRank());
  for (size_t i = 0; i < from.size(); ++i) {
    int64_t needed = (op.getWindow()[i] - 1) * op.getDilations()[i] +
                     (to[i] - 1) * op.getStrides()[i] + 1;
    padding.low[i + 2] = op.getPadLow()[i];
    padding.high[i + 2] = needed - from[i] - op.getPadLow()[i];
  }
  int64_t groups = op.getGroups();
  Value x = padding.apply(emitter, batchToChannels(emitter, op.getX(), groups));
  Value filter = swapLeadingAxes(emitter, gradient);
  SmallVector<int64_t> shape(getType(op.getFilter()).getShape());
  std::swap(shape[0], shape[1]);
  auto type = RankedTensorType::get(shape, getElementTypeOrSelf(gradient));
  Value result =
      convolve(emitter, type, x, filter, op.getFilters(), groups,
               op.getDilations(), padding.low, padding.high, op.getStrides());
  return swapLeadingAxes(emitter, result);
}

LogicalResult ConvOp::emitGradients(Gradients &gradients) {
  if (failed(checkWindowOp(*this)))
    return failure();
  if (gradients.wants(getFilter()) && !::getType(getX()).hasStaticShape())
    return emitOpError("of a symbolic batch has no derivative with respect to "
                       "its filter");
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient =
      emitter.castTo(gradients.get(getResult()), ::getType(getX()));
  if (gradients.wants(getX()))
    gradients.add(getX(), deriveData(emitter, *this, gradient));
  if (gradients.wants(getFilter()))
    gradients.add(getFilter(), deriveFilter(emitter, *this, gradient));
  return success();
}

// --- pool --------------------------------------------------------------------

/// The sums of the windows of x, of which `low` and `high` are borders of
/// zeros.
static Value sumWindows(const TensorEmitter &emitter, PoolOp op, Value x,
                        ArrayRef<int64_t> strides, ArrayRef<int64_t> low,
                        ArrayRef<int64_t> high) {
  SmallVector<int64_t> none(strides.size(), 0);
  return emitter.emit<PoolOp>(PoolKind::sum, x, op.getWindow(), strides, low,
                              high, op.getDilations(), /*channels_last=*/false,
                              /*count_padding=*/false, none, none);
}

/// What each sum of a window was divided by.
static Value countElements(const TensorEmitter &emitter, PoolOp op) {
  auto type = getType(op.getX());
  SmallVector<int64_t> shape = {1, 1};
  llvm::append_range(shape, getSpatial(op.getX()));
  auto whole = RankedTensorType::get(shape, type.getElementType());
  Value ones = emitter.splat(whole, 1.0);
  SmallVector<int64_t> low(op.getPadLow()), high(op.getPadHigh());
  if (op.getCountPadding()) {
    SmallVector<int64_t> before = {0, 0}, after = {0, 0};
    llvm::append_range(before, op.getCountLow());
    llvm::append_range(after, op.getCountHigh());
    auto scalar = RankedTensorType::get({}, type.getElementType());
    ones = emitter.emit<PadOp>(ones, emitter.splat(scalar, 1.0), before, after,
                               SmallVector<int64_t>(shape.size(), 0),
                               PadMode::constant);
    for (size_t i = 0; i < low.size(); ++i) {
      low[i] -= op.getCountLow()[i];
      high[i] -= op.getCountHigh()[i];
    }
  }
  return sumWindows(emitter, op, ones, op.getStrides(), low, high);
}

/// Each element gets the sum over the windows that read it.
static Value deriveSum(const TensorEmitter &emitter, PoolOp op,
                       Value gradient) {
  if (op.getKind() == PoolKind::average)
    gradient = emitter.emit<DivOp>(
        gradient, emitter.emit<BroadcastOp>(gradient.getType(),
                                            countElements(emitter, op)));
  Padding padding = padForData(op);
  Value spread = padding.apply(emitter, gradient);
  return sumWindows(emitter, op, spread, makeOnes(op.getWindow().size()),
                    padding.low, padding.high);
}

namespace {

/// The places of a window, one after the other.
class MaxPoolGradient {
public:
  MaxPoolGradient(const TensorEmitter &emitter, PoolOp op)
      : emitter(emitter), op(op) {
    for (int64_t extent : op.getWindow())
      places *= extent;
  }

  /// Each window's gradient goes to the first of its largest elements.
  Value derive(Value gradient) {
    Value chosen = choosePlaces();
    Value sum;
    for (int64_t place = 0; place < places; ++place) {
      Value isHere = emitter.emit<CompareOp>(
          CompareKind::eq, chosen, emitter.splat(chosen, double(place)));
      Value part = spread(emitter.emit<SelectOp>(isHere, gradient,
                                                 emitter.splat(gradient, 0.0)),
                          place);
      sum = sum ? emitter.emit<AddOp>(sum, part) : part;
    }
    return sum;
  }

private:
  /// Where `place` lies in the window, along each spatial axis, of x.
  SmallVector<int64_t> getOffsets(int64_t place) {
    SmallVector<int64_t> offsets(op.getWindow().size());
    for (size_t i = offsets.size(); i-- > 0;) {
      offsets[i] =
          place % op.getWindow()[i] * op.getDilations()[i] - op.getPadLow()[i];
      place /= op.getWindow()[i];
    }
    return offsets;
  }

  /// Brings the elements of x that lie at `offsets` of each window to its place
  /// in the result, or with `isBack` the other way round.
  Value move(Value from, RankedTensorType to, int64_t place, double outside,
             bool isBack) {
    int64_t rank = to.getRank();
    SmallVector<int64_t> low(rank, 0), high(rank, 0), interior(rank, 0),
        steps(rank, 1);
    SmallVector<AffineExpr> starts(rank,
                                   emitter.builder.getAffineConstantExpr(0));
    for (auto [i, offset] : llvm::enumerate(getOffsets(place))) {
      int64_t stride = op.getStrides()[i], axis = i + 2;
      int64_t count = getSpatial(op.getResult())[i];
      int64_t end = offset + (count - 1) * stride + 1;
      int64_t extent = getSpatial(op.getX())[i];
      if (isBack) {
        interior[axis] = stride - 1;
        low[axis] = offset;
        high[axis] = extent - end;
      } else {
        low[axis] = std::max<int64_t>(-offset, 0);
        high[axis] = std::max<int64_t>(end - extent, 0);
        starts[axis] =
            emitter.builder.getAffineConstantExpr(std::max<int64_t>(offset, 0));
        steps[axis] = stride;
      }
    }
    auto scalar = RankedTensorType::get({}, to.getElementType());
    Value padded = emitter.emit<PadOp>(from, emitter.splat(scalar, outside),
                                       low, high, interior, PadMode::constant);
    if (isBack)
      return padded;
    return emitter.emit<SliceOp>(to, padded,
                                 makeSizeMap(starts, from.getContext()), steps);
  }

  Value spread(Value part, int64_t place) {
    return move(part, getType(op.getX()), place, 0.0, /*isBack=*/true);
  }

  /// The first place of each window that holds its maximum.
  Value choosePlaces() {
    Value y = op.getResult();
    auto type = withElementType(getType(y), emitter.builder.getIntegerType(32));
    Value chosen = emitter.splat(type, double(places));
    for (int64_t place = places; place-- > 0;) {
      Value x = move(op.getX(), getType(y), place,
                     -std::numeric_limits<double>::infinity(),
                     /*isBack=*/false);
      chosen =
          emitter.emit<SelectOp>(emitter.emit<CompareOp>(CompareKind::eq, x, y),
                                 emitter.splat(type, double(place)), chosen);
    }
    return chosen;
  }

  const TensorEmitter &emitter;
  PoolOp op;
  int64_t places = 1;
};

} // namespace

LogicalResult PoolOp::emitGradients(Gradients &gradients) {
  if (failed(checkWindowOp(*this)))
    return failure();
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = gradients.get(getResult());
  gradients.add(getX(), getKind() == PoolKind::max
                            ? MaxPoolGradient(emitter, *this).derive(gradient)
                            : deriveSum(emitter, *this, gradient));
  return success();
}
