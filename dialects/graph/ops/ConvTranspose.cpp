#include "dialects/graph/ops/Window.h"
#include "dialects/graph/ops/WindowGradients.h"

#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

/// Axes of x and of the filter that are not spatial.
static constexpr int64_t kOtherAxes = 2;

/// What a window adds to the extent that positions take alone, of spatial axis
/// i of the result: out = in * stride + this.
static int64_t getOverhang(ConvTransposeOp op, size_t i) {
  int64_t reach = (op.getWindow()[i] - 1) * op.getDilations()[i] + 1;
  return reach - op.getStrides()[i] - op.getPadLow()[i] - op.getPadHigh()[i];
}

// --- The op ------------------------------------------------------------------

LogicalResult ConvTransposeOp::inferReturnTypes(MLIRContext *context,
                                                std::optional<Location> loc,
                                                Adaptor adaptor,
                                                SmallVectorImpl<Type> &types) {
  auto type = cast<RankedTensorType>(adaptor.getX().getType());
  auto filter = cast<RankedTensorType>(adaptor.getFilter().getType());
  int64_t spatial = type.getRank() - kOtherAxes;
  int64_t groups = adaptor.getGroups();
  if (spatial < 1 || filter.getRank() != type.getRank())
    return emitOptionalError(loc, "expected x and a filter of one rank, 3 or "
                                  "more");
  if (failed(checkWindow(loc, adaptor, spatial)))
    return failure();
  Extents x = getExtents(type);
  std::optional<int64_t> channels = getConstant(x[1]);
  if (!filter.hasStaticShape() || channels != filter.getDimSize(0) ||
      filter.getShape().drop_front(kOtherAxes) != adaptor.getWindow())
    return emitOptionalError(loc,
                             "expected a filter of the channels of x and "
                             "of the window, found ",
                             filter);
  if (groups < 1 || *channels % groups != 0)
    return emitOptionalError(loc, "cannot split ", *channels, " channels into ",
                             groups, " groups");
  Extents extents = {
      x[0], getAffineConstantExpr(groups * filter.getDimSize(1), context)};
  for (int64_t i = 0; i < spatial; ++i) {
    int64_t stride = adaptor.getStrides()[i], window = adaptor.getWindow()[i];
    int64_t dilation = adaptor.getDilations()[i];
    AffineExpr extent = (x[kOtherAxes + i] - 1) * stride +
                        (window - 1) * dilation + 1 - adaptor.getPadLow()[i] -
                        adaptor.getPadHigh()[i];
    if (auto constant = getConstant(extent); constant && *constant < 0)
      return emitOptionalError(loc, "pads take more than there is of axis ",
                               kOtherAxes + i);
    extents.push_back(extent);
  }
  types.push_back(makeTensorType(extents, type.getElementType()));
  return success();
}

// Loops: batch, group, filter of the group, channel of the group, the positions
// of x, window...

SmallVector<utils::IteratorType> ConvTransposeOp::getLoopKinds() {
  SmallVector<utils::IteratorType> kinds(3, utils::IteratorType::parallel);
  kinds.append(1 + 2 * getWindow().size(), utils::IteratorType::reduction);
  return kinds;
}

Extents ConvTransposeOp::getLoopExtents() {
  Extents x = getExtents(getX());
  auto constant = [&](int64_t value) {
    return getAffineConstantExpr(value, getContext());
  };
  Extents extents = {x[0], constant(getGroups()),
                     constant(getFilter().getType().getDimSize(1)),
                     constant(*getConstant(x[1]) / int64_t(getGroups()))};
  llvm::append_range(extents, ArrayRef(x).drop_front(kOtherAxes));
  for (int64_t extent : getWindow())
    extents.push_back(constant(extent));
  return extents;
}

static AffineMap mapLoops(ConvTransposeOp op, ArrayRef<AffineExpr> leading,
                          function_ref<AffineExpr(size_t axis)> spatial) {
  SmallVector<AffineExpr> indices(leading);
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    indices.push_back(spatial(i));
  return AffineMap::get(4 + 2 * op.getWindow().size(), 0, indices,
                        op.getContext());
}

/// Member `loop` of the group that loop 1 is at, of `count` in each.
static AffineExpr indexMember(ConvTransposeOp op, int64_t loop, int64_t count) {
  AffineExpr member = getAffineDimExpr(loop, op.getContext());
  AffineExpr group = getAffineDimExpr(1, op.getContext());
  return op.getGroups() == 1 ? member : group * count + member;
}

AffineMap ConvTransposeOp::getOperandMap(unsigned operand) {
  auto loop = [&](size_t i) { return getAffineDimExpr(i, getContext()); };
  int64_t channels = *getConstant(getExtent(getX(), 1));
  AffineExpr channel = indexMember(*this, 3, channels / int64_t(getGroups()));
  if (operand == 0)
    return mapLoops(*this, {loop(0), channel},
                    [&](size_t i) { return loop(4 + i); });
  size_t firstTap = 4 + getWindow().size();
  return mapLoops(*this, {channel, loop(2)},
                  [&](size_t i) { return loop(firstTap + i); });
}

AffineMap ConvTransposeOp::getResultMap(unsigned) {
  auto loop = [&](size_t i) { return getAffineDimExpr(i, getContext()); };
  AffineExpr filter =
      indexMember(*this, 2, getFilter().getType().getDimSize(1));
  size_t firstTap = 4 + getWindow().size();
  return mapLoops(*this, {loop(0), filter}, [&](size_t i) {
    return loop(4 + i) * getStrides()[i] +
           loop(firstTap + i) * getDilations()[i] - getPadLow()[i];
  });
}

// --- As convolutions -----------------------------------------------------

/// The filter of the convolution that a transposed one is, of x with zeros
/// between its elements: [channels of the result, channels of x / groups,
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
                              /*packed_filter=*/false, /*tf32=*/false, zeroTaps,
                              /*input_dilations=*/DenseI64ArrayAttr());
}

static AffineExpr makeNumber(const TensorEmitter &emitter, int64_t n) {
  return emitter.builder.getAffineConstantExpr(n);
}

/// A convolution with stride 1 of x, spread, with the filter turned round. A
/// window of one element is spread afterwards.
static Value convolveSpread(const TensorEmitter &emitter, ConvTransposeOp op) {
  size_t spatial = op.getWindow().size();
  Value filter = transposeFilter(emitter, op.getFilter(), op.getGroups());
  int64_t filters = getType(filter).getDimSize(0);
  Padding padding(spatial + kOtherAxes);
  for (size_t i = 0; i < spatial; ++i) {
    int64_t reach = (op.getWindow()[i] - 1) * op.getDilations()[i];
    padding.low[i + kOtherAxes] = reach - op.getPadLow()[i];
    padding.high[i + kOtherAxes] = reach - op.getPadHigh()[i];
    padding.interior[i + kOtherAxes] = op.getStrides()[i] - 1;
  }
  SmallVector<int64_t> ones = makeOnes(spatial), none(spatial, 0);
  bool isElement =
      llvm::all_of(op.getWindow(), [](int64_t w) { return w == 1; });
  if (!isElement) {
    Value spread = padding.apply(emitter, op.getX());
    return convolve(emitter, getType(op.getResult()), spread, filter, filters,
                    op.getGroups(), ones, padding.low, padding.high,
                    op.getDilations());
  }
  Extents extents = getExtents(op.getX());
  extents[1] = makeNumber(emitter, filters);
  auto type = makeTensorType(extents, getElementTypeOrSelf(op.getX()));
  Value result = convolve(emitter, type, op.getX(), filter, filters,
                          op.getGroups(), ones, none, none, ones);
  auto isZero = [](int64_t n) { return n == 0; };
  if (llvm::all_of(padding.low, isZero) && llvm::all_of(padding.high, isZero) &&
      llvm::all_of(padding.interior, isZero))
    return result;
  auto scalar = RankedTensorType::get({}, type.getElementType());
  return emitter.emit<PadOp>(result, emitter.splat(scalar, 0.0), padding.low,
                             padding.high, padding.interior, PadMode::constant);
}

namespace {

/// Elements of the result that lie `stride` apart have the same places in
/// windows: a convolution of x with stride 1 gives all of these phases as
/// channels, [group, phase..., channel], and multiplies few zeros.
class PhasedConvolution {
public:
  PhasedConvolution(const TensorEmitter &emitter, ConvTransposeOp op)
      : emitter(emitter), op(op), spatial(op.getWindow().size()),
        groups(op.getGroups()), padding(spatial + kOtherAxes) {
    for (size_t i = 0; i < spatial; ++i)
      addAxis(i);
  }

  /// Each phase takes a filter and a mask, whether or not the result reaches
  /// it.
  static bool applies(ConvTransposeOp op) {
    constexpr int64_t kMaxPhases = 4096;
    auto isOne = [](int64_t n) { return n == 1; };
    if (llvm::all_of(op.getStrides(), isOne) ||
        llvm::all_of(op.getWindow(), isOne) ||
        !llvm::all_of(op.getDilations(), isOne))
      return false;
    int64_t phases = 1;
    for (auto [stride, window] :
         llvm::zip_equal(op.getStrides(), op.getWindow())) {
      // Beyond, most of the filters would be zeros.
      if (stride > 2 * window || stride > kMaxPhases / phases)
        return false;
      phases *= stride;
    }
    return true;
  }

  Value emit() {
    Value filter = splitFilter();
    int64_t filters = getType(filter).getDimSize(0);
    Extents extents = {getExtent(op.getX(), 0), makeNumber(emitter, filters)};
    for (const Axis &axis : axes)
      extents.push_back(axis.count);
    auto type = makeTensorType(extents, getElementTypeOrSelf(op.getX()));
    Value x = padding.apply(emitter, op.getX());
    SmallVector<int64_t> ones = makeOnes(spatial);
    return joinPhases(convolve(emitter, type, x, filter, filters, groups, ones,
                               padding.low, padding.high, ones,
                               findZeroTaps()));
  }

private:
  /// Element q * stride + r of the result has the products of tap `first` + j *
  /// stride + r with element q + last - j of x, j < taps.
  struct Axis {
    int64_t stride, taps, first, cut;
    AffineExpr count; // of q
  };

  AffineExpr number(int64_t n) const { return makeNumber(emitter, n); }
  int64_t getFilters() { return getType(op.getFilter()).getDimSize(1); }

  /// The same of the result with `cut` more elements before it.
  Axis makeAxis(size_t i, int64_t cut) {
    int64_t stride = op.getStrides()[i], low = op.getPadLow()[i] - cut;
    int64_t window = op.getWindow()[i];
    int64_t last = llvm::divideCeilSigned(low, stride);
    int64_t taps = last - llvm::divideCeilSigned(low - window + 1, stride) + 1;
    int64_t more = llvm::divideCeilSigned(getOverhang(op, i) + cut, stride);
    padding.low[i + kOtherAxes] = taps - 1 - last;
    padding.high[i + kOtherAxes] =
        more - padding.low[i + kOtherAxes] + taps - 1;
    return {stride, taps, low - last * stride, cut,
            getExtent(op.getX(), i + kOtherAxes) + more};
  }

  /// Phases that begin where a window does have the fewest taps.
  void addAxis(size_t i) {
    int64_t low = op.getPadLow()[i], stride = op.getStrides()[i];
    int64_t cut = low - llvm::divideFloorSigned(low, stride) * stride;
    bool isBegun = makeAxis(i, cut).taps < makeAxis(i, 0).taps;
    axes.push_back(makeAxis(i, isBegun ? cut : 0));
  }

  /// The taps of each phase, turned round, zero where there is none:
  /// [groups * phase... * filters, channels of a group, taps...].
  Value splitFilter() {
    auto type = getType(op.getFilter());
    int64_t rank = type.getRank(), channels = type.getDimSize(0) / groups;
    SmallVector<int64_t> low(rank, 0), high(rank, 0), steps(3, 1);
    SmallVector<int64_t> shape = {groups, channels, getFilters()}, joined;
    SmallVector<AffineExpr> starts(3, number(0));
    SmallVector<int64_t> order = {0}, ends = {2, 1};
    int64_t phases = 1;
    for (auto [i, axis] : llvm::enumerate(axes)) {
      low[i + kOtherAxes] = -axis.first;
      high[i + kOtherAxes] = axis.taps * axis.stride + axis.first -
                             type.getDimSize(i + kOtherAxes);
      order.push_back(shape.size() + 1);
      ends.push_back(shape.size());
      shape.append({axis.taps, axis.stride});
      starts.append({number(axis.taps - 1), number(0)});
      steps.append({-1, 1});
      joined.push_back(axis.taps);
      phases *= axis.stride;
    }
    order.append(ends);
    joined.insert(joined.begin(), {groups * phases * getFilters(), channels});
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
    if (tapCount >= 64 || groups > 1 ||
        llvm::all_of(zeros, [](int64_t bits) { return !bits; }))
      return {};
    return emitter.builder.getDenseI64ArrayAttr(zeros);
  }

  /// With the channels last, whole rows of which are moved.
  Value joinPhases(Value x) {
    auto last = getChannelsLastPermutation(spatial + kOtherAxes);
    x = emitter.emit<TransposeOp>(x, last);
    Extents split = getExtents(x), joined = {split.front()};
    Extents starts(joined.size() + axes.size() + 1, number(0));
    split.pop_back();
    bool isGrouped = groups > 1;
    int64_t firstPhase = 1 + spatial + (isGrouped ? 1 : 0);
    SmallVector<int64_t> order = {0};
    if (isGrouped)
      split.push_back(number(groups));
    for (auto [i, axis] : llvm::enumerate(axes)) {
      split.push_back(number(axis.stride));
      order.append({int64_t(1 + i), int64_t(firstPhase + i)});
      joined.push_back(axis.count * axis.stride);
      starts[1 + i] = number(axis.cut);
    }
    if (isGrouped)
      order.push_back(1 + spatial);
    order.push_back(firstPhase + spatial);
    split.push_back(number(getFilters()));
    joined.push_back(number(groups * getFilters()));
    x = emitter.emit<TransposeOp>(emitter.reshape(x, split), order);
    x = emitter.reshape(x, joined);
    Extents wanted = applyPermutation(getExtents(op.getResult()), last);
    if (!llvm::equal(joined, wanted, isEqual))
      x = emitter.emit<SliceOp>(makeTensorType(wanted, getElementTypeOrSelf(x)),
                                x, makeSizeMap(starts, op.getContext()),
                                makeOnes(joined.size()));
    return emitter.emit<TransposeOp>(x, invertPermutationVector(last));
  }

  const TensorEmitter &emitter;
  ConvTransposeOp op;
  size_t spatial;
  int64_t groups;
  Padding padding;
  SmallVector<Axis> axes;
};

} // namespace

// --- As a sliding convolution --------------------------------------------

/// Whether narrow groups of x, with zeros between its elements that nothing
/// multiplies, may slide.
static bool canSlide(ConvTransposeOp op) {
  auto filter = getType(op.getFilter());
  int64_t groups = op.getGroups(), perGroup = filter.getDimSize(1);
  if (groups * perGroup < kMinSlidingFilters ||
      !areNarrow(groups, filter.getDimSize(0) / groups, perGroup,
                 getElementTypeOrSelf(op.getX())))
    return false;
  for (size_t i = 0; i < op.getWindow().size(); ++i)
    if (op.getDilations()[i] != 1 || op.getPadLow()[i] >= op.getWindow()[i] ||
        op.getPadHigh()[i] >= op.getWindow()[i])
      return false;
  return true;
}

/// With the channels last, as such a convolution has them.
static Value slide(const TensorEmitter &emitter, ConvTransposeOp op) {
  size_t spatial = op.getWindow().size();
  auto last = getChannelsLastPermutation(spatial + kOtherAxes);
  Value filter = transposeFilter(emitter, op.getFilter(), op.getGroups());
  SmallVector<int64_t> low, high, ones = makeOnes(spatial);
  DenseI64ArrayAttr inputDilations;
  if (op.getStrides() != ArrayRef(ones))
    inputDilations = emitter.builder.getDenseI64ArrayAttr(op.getStrides());
  for (size_t i = 0; i < spatial; ++i) {
    low.push_back(op.getWindow()[i] - 1 - op.getPadLow()[i]);
    high.push_back(op.getWindow()[i] - 1 - op.getPadHigh()[i]);
  }
  auto type = makeTensorType(applyPermutation(getExtents(op.getResult()), last),
                             getElementTypeOrSelf(op.getResult()));
  Value result = emitter.emit<ConvOp>(
      type, emitter.emit<TransposeOp>(op.getX(), last),
      emitter.emit<TransposeOp>(filter, last), getType(filter).getDimSize(0),
      op.getGroups(), op.getWindow(), ones, low, high, ones,
      /*channels_last=*/true, /*packed_filter=*/false, /*tf32=*/false,
      /*zero_taps=*/DenseI64ArrayAttr(), inputDilations);
  return emitter.emit<TransposeOp>(result, invertPermutationVector(last));
}

/// Narrow groups slide; phases multiply fewer zeros than x spread with them.
FailureOr<SmallVector<Value>> ConvTransposeOp::decompose(OpBuilder &builder) {
  TensorEmitter emitter(builder, getLoc());
  if (canSlide(*this))
    return SmallVector<Value>{slide(emitter, *this)};
  Value result = PhasedConvolution::applies(*this)
                     ? PhasedConvolution(emitter, *this).emit()
                     : convolveSpread(emitter, *this);
  return SmallVector<Value>{result};
}

// --- Gradients ---------------------------------------------------------------

/// With respect to x a convolution of the gradient; with respect to the filter
/// that of such a convolution.
LogicalResult ConvTransposeOp::emitGradients(Gradients &gradients) {
  auto type = tcc::graph::getType(getX());
  if (gradients.wants(getFilter()) && !type.hasStaticShape())
    return emitOpError("of a symbolic batch has no derivative with respect to "
                       "its filter");
  TensorEmitter emitter(gradients.getBuilder(), getLoc());
  Value gradient = emitter.castTo(gradients.get(getResult()), type);
  if (gradients.wants(getX())) {
    Padding padding(type.getRank());
    for (size_t i = 0; i < getWindow().size(); ++i) {
      padding.low[i + kOtherAxes] = getPadLow()[i];
      padding.high[i + kOtherAxes] = getPadHigh()[i];
    }
    Value from = padding.apply(emitter, gradient);
    gradients.add(getX(),
                  convolve(emitter, type, from, getFilter(), type.getDimSize(1),
                           getGroups(), getStrides(), padding.low, padding.high,
                           getDilations()));
  }
  if (gradients.wants(getFilter()))
    gradients.add(getFilter(), deriveFilter(emitter, *this, gradient, getX()));
  return success();
}
