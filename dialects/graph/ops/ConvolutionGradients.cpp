#include "dialects/graph/ops/WindowGradients.h"

#include "dialects/graph/interfaces/Permute.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

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
                      ArrayRef<int64_t> high, ArrayRef<int64_t> dilations,
                      DenseI64ArrayAttr zeroTaps = {}) {
  return emitter.emit<ConvOp>(type, x, filter, filters, groups,
                              getSpatial(filter), strides, low, high, dilations,
                              /*channels_last=*/false,
                              /*packed_filter=*/false, /*tf32=*/false,
                              zeroTaps);
}

/// A convolution with stride 1 of the gradient, spread, with the filters turned
/// round. A window of one element is spread afterwards.
static Value deriveSpreadData(const TensorEmitter &emitter, ConvOp op,
                              Value gradient) {
  Padding padding = padForData(op);
  bool isElement =
      llvm::all_of(op.getWindow(), [](int64_t w) { return w == 1; });
  Value filter = transposeFilter(emitter, op.getFilter(), op.getGroups());
  int64_t channels = getType(op.getX()).getDimSize(1);
  SmallVector<int64_t> ones = makeOnes(op.getWindow().size());
  if (isElement) {
    SmallVector<int64_t> none(ones.size(), 0);
    Extents extents = getExtents(gradient);
    extents[1] = emitter.builder.getAffineConstantExpr(channels);
    auto type = makeTensorType(extents, getElementTypeOrSelf(gradient));
    Value x = convolve(emitter, type, gradient, filter, channels,
                       op.getGroups(), ones, none, none, ones);
    if (x.getType() == op.getX().getType())
      return x;
    auto scalar = RankedTensorType::get({}, type.getElementType());
    return emitter.emit<PadOp>(x, emitter.splat(scalar, 0.0), padding.low,
                               padding.high, padding.interior,
                               PadMode::constant);
  }
  Value spread = padding.apply(emitter, gradient);
  return convolve(emitter, getType(op.getX()), spread, filter, channels,
                  op.getGroups(), ones, padding.low, padding.high,
                  op.getDilations());
}

namespace {

/// Elements of x that lie `stride` apart were read for the same places of a
/// window: a convolution of the gradient with stride 1 gives all of these
/// phases as channels, [phase..., channel], and multiplies few zeros.
class PhasedGradient {
public:
  PhasedGradient(const TensorEmitter &emitter, ConvOp op)
      : emitter(emitter), op(op), spatial(op.getWindow().size()),
        padding(spatial + 2) {
    for (size_t i = 0; i < spatial; ++i)
      addAxis(i);
  }

  static bool applies(ConvOp op) {
    auto isOne = [](int64_t n) { return n == 1; };
    return op.getGroups() == 1 && !llvm::all_of(op.getStrides(), isOne) &&
           llvm::all_of(op.getDilations(), isOne) &&
           !llvm::all_of(op.getWindow(), isOne);
  }

  Value derive(Value gradient) {
    Value filter = splitFilter();
    int64_t filters = getType(filter).getDimSize(0);
    Extents extents = {getExtents(gradient).front(), number(filters)};
    for (const Axis &axis : axes)
      extents.push_back(number(axis.count));
    auto type = makeTensorType(extents, getElementTypeOrSelf(gradient));
    Value x = padding.apply(emitter, gradient);
    SmallVector<int64_t> ones = makeOnes(spatial);
    return joinPhases(convolve(emitter, type, x, filter, filters, 1, ones,
                               padding.low, padding.high, ones,
                               findZeroTaps()));
  }

private:
  /// Element q * stride + r of x has the products of tap `first` + j * stride +
  /// r with element q + last - j of the gradient, j < taps.
  struct Axis {
    int64_t stride, taps, first, count; // of q
  };

  AffineExpr number(int64_t n) const {
    return emitter.builder.getAffineConstantExpr(n);
  }

  void addAxis(size_t i) {
    int64_t stride = op.getStrides()[i], low = op.getPadLow()[i];
    int64_t window = op.getWindow()[i], extent = getSpatial(op.getX())[i];
    int64_t last = llvm::divideCeilSigned(low, stride);
    int64_t taps = last - llvm::divideCeilSigned(low - window + 1, stride) + 1;
    Axis axis{stride, taps, low - last * stride,
              int64_t(llvm::divideCeil(extent, stride))};
    axes.push_back(axis);
    padding.low[i + 2] = taps - 1 - last;
    padding.high[i + 2] = axis.count - getSpatial(op.getResult())[i] -
                          padding.low[i + 2] + taps - 1;
  }

  /// The taps of each phase, turned round, zero where there is none:
  /// [phase... * channels, filters, taps...].
  Value splitFilter() {
    auto type = getType(op.getFilter());
    int64_t rank = type.getRank();
    SmallVector<int64_t> low(rank, 0), high(rank, 0), steps = {1, 1};
    SmallVector<int64_t> shape(type.getShape().take_front(2)), joined;
    SmallVector<AffineExpr> starts(2, number(0));
    SmallVector<int64_t> order, ends = {1, 0};
    int64_t phases = 1;
    for (auto [i, axis] : llvm::enumerate(axes)) {
      low[i + 2] = -axis.first;
      high[i + 2] =
          axis.taps * axis.stride + axis.first - type.getDimSize(i + 2);
      order.push_back(shape.size() + 1);
      ends.push_back(shape.size());
      shape.append({axis.taps, axis.stride});
      starts.append({number(axis.taps - 1), number(0)});
      steps.append({-1, 1});
      joined.push_back(axis.taps);
      phases *= axis.stride;
    }
    order.append(ends);
    joined.insert(joined.begin(), {phases * shape[1], shape[0]});
    Type element = type.getElementType();
    auto scalar = RankedTensorType::get({}, element);
    Value filter = emitter.emit<PadOp>(
        op.getFilter(), emitter.splat(scalar, 0.0), low, high,
        SmallVector<int64_t>(rank, 0), PadMode::constant);
    auto split = RankedTensorType::get(shape, element);
    filter = emitter.emit<ReshapeOp>(split, filter);
    filter = emitter.emit<SliceOp>(split, filter,
                                   makeSizeMap(starts, op.getContext()), steps);
    return emitter.emit<ReshapeOp>(RankedTensorType::get(joined, element),
                                   emitter.emit<TransposeOp>(filter, order));
  }

  /// The taps that a phase has not, a bit for each, of all phases; null if all
  /// have all taps.
  DenseI64ArrayAttr findZeroTaps() {
    SmallVector<int64_t> strides, taps;
    for (const Axis &axis : axes) {
      strides.push_back(axis.stride);
      taps.push_back(axis.taps);
    }
    int64_t tapCount = computeProduct(taps);
    SmallVector<int64_t> zeros(computeProduct(strides), 0);
    for (auto [phase, bits] : llvm::enumerate(zeros)) {
      auto r = delinearize(phase, computeSuffixProduct(strides));
      for (int64_t tap = 0; tap < std::min<int64_t>(tapCount, 63); ++tap) {
        auto turned = delinearize(tap, computeSuffixProduct(taps));
        for (auto [i, axis] : llvm::enumerate(axes)) {
          int64_t j = axis.taps - 1 - turned[i];
          int64_t place = axis.first + j * axis.stride + r[i];
          if (place < 0 || place >= op.getWindow()[i])
            bits |= int64_t(1) << tap;
        }
      }
    }
    if (tapCount >= 64 ||
        llvm::all_of(zeros, [](int64_t bits) { return !bits; }))
      return {};
    return emitter.builder.getDenseI64ArrayAttr(zeros);
  }

  /// With the channels last, whole rows of which are moved.
  Value joinPhases(Value x) {
    auto last = getChannelsLastPermutation(spatial + 2);
    x = emitter.emit<TransposeOp>(x, last);
    Extents split = getExtents(x), joined = {split.front()};
    split.pop_back();
    SmallVector<int64_t> order = {0};
    for (auto [i, axis] : llvm::enumerate(axes)) {
      split.push_back(number(axis.stride));
      order.append({int64_t(1 + i), int64_t(1 + spatial + i)});
      joined.push_back(number(axis.count * axis.stride));
    }
    order.push_back(1 + 2 * spatial);
    split.push_back(number(getType(op.getX()).getDimSize(1)));
    joined.push_back(split.back());
    x = emitter.emit<TransposeOp>(emitter.reshape(x, split), order);
    x = emitter.reshape(x, joined);
    Extents wanted = applyPermutation(getExtents(op.getX()), last);
    if (joined != wanted)
      x = emitter.emit<SliceOp>(
          makeTensorType(wanted, getElementTypeOrSelf(x)), x,
          makeSizeMap(SmallVector<AffineExpr>(joined.size(), number(0)),
                      op.getContext()),
          makeOnes(joined.size()));
    return emitter.emit<TransposeOp>(x, invertPermutationVector(last));
  }

  const TensorEmitter &emitter;
  ConvOp op;
  size_t spatial;
  Padding padding;
  SmallVector<Axis> axes;
};

} // namespace

static Value deriveData(const TensorEmitter &emitter, ConvOp op,
                        Value gradient) {
  if (PhasedGradient::applies(op))
    return PhasedGradient(emitter, op).derive(gradient);
  return deriveSpreadData(emitter, op, gradient);
}

/// The kernel reads pixels, whose channels are neighbours.
static Value deriveFilter(const TensorEmitter &emitter, ConvOp op,
                          Value gradient) {
  auto permutation = getChannelsLastPermutation(getType(op.getX()).getRank());
  Value x = emitter.emit<TransposeOp>(op.getX(), permutation);
  Value last = emitter.emit<TransposeOp>(gradient, permutation);
  Value result = emitter.emit<ConvFilterGradientOp>(
      x, last, op.getWindow(), op.getStrides(), op.getPadLow(),
      op.getDilations(), op.getGroups(), /*tf32=*/false);
  return emitter.emit<TransposeOp>(result,
                                   invertPermutationVector(permutation));
}

LogicalResult ConvOp::emitGradients(Gradients &gradients) {
  if (failed(checkWindowOp(*this)))
    return failure();
  if (gradients.wants(getFilter()) &&
      !tcc::graph::getType(getX()).hasStaticShape())
    return emitOpError("of a symbolic batch has no derivative with respect to "
                       "its filter");
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient =
      emitter.castTo(gradients.get(getResult()), tcc::graph::getType(getX()));
  if (gradients.wants(getX()))
    gradients.add(getX(), deriveData(emitter, *this, gradient));
  if (gradients.wants(getFilter()))
    gradients.add(getFilter(), deriveFilter(emitter, *this, gradient));
  return success();
}
