#include "dialects/graph/ops/WindowGradients.h"

#include "dialects/graph/interfaces/Permute.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"

using namespace mlir;
using namespace tcc::graph;

/// The padding of a gradient of `op`'s result on which windows with stride 1
/// meet, at each element of x, those elements that it was read for.
static Padding padForData(PoolOp op) {
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

/// The gradient of windows over x that keep the largest element.
class MaxPoolGradient {
public:
  MaxPoolGradient(const TensorEmitter &emitter, PoolOp op)
      : emitter(emitter), op(op) {
    for (int64_t extent : op.getWindow())
      places *= extent;
  }

  /// Each window's gradient goes to the first of its largest elements. Those
  /// windows that read element q * stride + r are q + distance, for a few
  /// distances.
  Value derive(Value gradient) {
    auto last = getChannelsLastPermutation(getType(gradient).getRank());
    chosen = emitter.emit<TransposeOp>(choosePlaces(), last);
    gradient = emitter.emit<TransposeOp>(gradient, last);
    Value sum;
    SmallVector<int64_t> distances(op.getWindow().size());
    for (size_t i = 0; i < distances.size(); ++i)
      distances[i] = getFirstDistance(i);
    for (bool isLast = false; !isLast; isLast = !advance(distances))
      if (Value part = takeFrom(distances, gradient))
        sum = sum ? emitter.emit<AddOp>(sum, part) : part;
    sum = join(sum ? sum : takeNothing(gradient), last);
    return emitter.emit<TransposeOp>(sum, invertPermutationVector(last));
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

  /// Brings the elements of x that lie at `place` of each window to its place
  /// in the result.
  Value gather(int64_t place) {
    RankedTensorType to = getType(op.getResult());
    int64_t rank = to.getRank();
    SmallVector<int64_t> low(rank, 0), high(rank, 0), steps(rank, 1);
    SmallVector<AffineExpr> starts(rank,
                                   emitter.builder.getAffineConstantExpr(0));
    for (auto [i, offset] : llvm::enumerate(getOffsets(place))) {
      int64_t stride = op.getStrides()[i], axis = i + 2;
      int64_t count = getSpatial(op.getResult())[i];
      int64_t end = offset + (count - 1) * stride + 1;
      int64_t extent = getSpatial(op.getX())[i];
      low[axis] = std::max<int64_t>(-offset, 0);
      high[axis] = std::max<int64_t>(end - extent, 0);
      starts[axis] =
          emitter.builder.getAffineConstantExpr(std::max<int64_t>(offset, 0));
      steps[axis] = stride;
    }
    auto scalar = RankedTensorType::get({}, to.getElementType());
    Value outside =
        emitter.splat(scalar, -std::numeric_limits<double>::infinity());
    Value padded =
        emitter.emit<PadOp>(op.getX(), outside, low, high,
                            SmallVector<int64_t>(rank, 0), PadMode::constant);
    return emitter.emit<SliceOp>(to, padded,
                                 makeSizeMap(starts, op.getContext()), steps);
  }

  /// The narrowest one for a place, or one more: places are stored from the
  /// forward to the backward pass.
  Type getPlaceType() {
    unsigned width = 8;
    while (!llvm::isIntN(width, places))
      width *= 2;
    return emitter.builder.getIntegerType(width);
  }

  /// The first place of each window that holds its maximum.
  Value choosePlaces() {
    Value y = op.getResult();
    auto type = withElementType(getType(y), getPlaceType());
    Value chosen = emitter.splat(type, double(places));
    for (int64_t place = places; place-- > 0;) {
      Value x = gather(place);
      chosen =
          emitter.emit<SelectOp>(emitter.emit<CompareOp>(CompareKind::eq, x, y),
                                 emitter.splat(type, double(place)), chosen);
    }
    return chosen;
  }

  int64_t getFirstDistance(size_t i) {
    int64_t reach = (op.getWindow()[i] - 1) * op.getDilations()[i];
    return llvm::divideCeilSigned(op.getPadLow()[i] - reach,
                                  op.getStrides()[i]);
  }

  /// The next ones in row-major order; false behind the last ones.
  bool advance(MutableArrayRef<int64_t> distances) {
    for (size_t i = distances.size(); i-- > 0;) {
      int64_t end =
          llvm::divideCeilSigned(op.getPadLow()[i], op.getStrides()[i]);
      if (++distances[i] <= end)
        return true;
      distances[i] = getFirstDistance(i);
    }
    return false;
  }

  /// How many q there are along a spatial axis.
  int64_t countBlocks(size_t i) {
    return llvm::divideCeil(getSpatial(op.getX())[i], op.getStrides()[i]);
  }

  /// [batch, (q, r)..., channel]
  RankedTensorType getBlockType(RankedTensorType like) {
    Extents extents = getExtents(like), blocks = {extents.front()};
    for (size_t i = 0; i < op.getWindow().size(); ++i)
      for (int64_t extent : {countBlocks(i), op.getStrides()[i]})
        blocks.push_back(emitter.builder.getAffineConstantExpr(extent));
    blocks.push_back(extents.back());
    return makeTensorType(blocks, like.getElementType());
  }

  /// What window q + distance has, for each q and r.
  Value repeat(Value windows, ArrayRef<int64_t> distances, double outside) {
    RankedTensorType type = getType(windows);
    SmallVector<int64_t> low(type.getRank(), 0), high(low), none(low);
    for (auto [i, distance] : llvm::enumerate(distances)) {
      low[1 + i] = -distance;
      high[1 + i] = countBlocks(i) + distance - getSpatial(op.getResult())[i];
    }
    auto scalar = RankedTensorType::get({}, type.getElementType());
    if (low != none || high != none)
      windows = emitter.emit<PadOp>(windows, emitter.splat(scalar, outside),
                                    low, high, none, PadMode::constant);
    RankedTensorType blocks = getBlockType(type);
    Extents single = getExtents(blocks);
    for (size_t i = 0; i < distances.size(); ++i)
      single[2 + 2 * i] = emitter.builder.getAffineConstantExpr(1);
    return emitter.emit<BroadcastOp>(blocks, emitter.reshape(windows, single));
  }

  /// The place in window q + distance of the element with each r; -1 if it has
  /// none. Null if no r has one.
  Value listPlaces(ArrayRef<int64_t> distances, RankedTensorType blocks) {
    SmallVector<int64_t> found = {0}, shape;
    for (auto [i, distance] : llvm::enumerate(distances)) {
      int64_t stride = op.getStrides()[i], dilation = op.getDilations()[i];
      SmallVector<int64_t> next;
      for (int64_t outer : found)
        for (int64_t r = 0; r < stride; ++r) {
          int64_t offset = r + op.getPadLow()[i] - distance * stride;
          int64_t tap = offset / dilation, window = op.getWindow()[i];
          bool isRead = offset >= 0 && offset % dilation == 0 && tap < window;
          next.push_back(outer >= 0 && isRead ? outer * window + tap : -1);
        }
      found = next;
      shape.append({stride, 1});
    }
    if (llvm::all_of(found, [](int64_t place) { return place < 0; }))
      return nullptr;
    auto type = RankedTensorType::get(shape, blocks.getElementType());
    auto values = llvm::map_to_vector(found, [&](int64_t place) {
      return APInt(type.getElementTypeBitWidth(), place, /*isSigned=*/true);
    });
    Value constant =
        emitter.emit<ConstantOp>(type, DenseElementsAttr::get(type, values));
    return emitter.emit<BroadcastOp>(blocks, constant);
  }

  Value takeFrom(ArrayRef<int64_t> distances, Value gradient) {
    Value wanted = listPlaces(distances, getBlockType(getType(chosen)));
    if (!wanted)
      return nullptr;
    Value isHere = emitter.emit<CompareOp>(
        CompareKind::eq, repeat(chosen, distances, double(places)), wanted);
    Value part = repeat(gradient, distances, 0.0);
    return emitter.emit<SelectOp>(isHere, part, emitter.splat(part, 0.0));
  }

  /// The gradient of an empty x.
  Value takeNothing(Value gradient) {
    return emitter.splat(getBlockType(getType(gradient)), 0.0);
  }

  /// The elements of all blocks in the order that they have in x.
  Value join(Value blocks, ArrayRef<int64_t> last) {
    Extents wanted = applyPermutation(getExtents(op.getX()), last);
    Extents joined = wanted;
    for (size_t i = 0; i < op.getWindow().size(); ++i)
      joined[1 + i] = emitter.builder.getAffineConstantExpr(countBlocks(i) *
                                                            op.getStrides()[i]);
    Value x = emitter.reshape(blocks, joined);
    if (joined == wanted)
      return x;
    SmallVector<AffineExpr> starts(joined.size(),
                                   emitter.builder.getAffineConstantExpr(0));
    return emitter.emit<SliceOp>(
        makeTensorType(wanted, getElementTypeOrSelf(x)), x,
        makeSizeMap(starts, op.getContext()), makeOnes(joined.size()));
  }

  const TensorEmitter &emitter;
  PoolOp op;
  int64_t places = 1;
  Value chosen; // the place of each window's maximum, channels last
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
