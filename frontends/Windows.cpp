#include "frontends/Windows.h"

using namespace mlir;

namespace tcc {

Window::Window(ArrayRef<int64_t> extents)
    : extents(extents), strides(extents.size(), 1),
      dilations(extents.size(), 1), low(extents.size(), 0),
      high(extents.size(), 0), countLow(extents.size(), 0),
      countHigh(extents.size(), 0) {}

bool padForCeil(Emitter &emitter, Window &window, int64_t i,
                AffineExpr extent) {
  int64_t stride = window.strides[i], reach = window.getReach(i);
  if (stride == 1)
    return true;
  auto known = graph::getConstant(extent);
  if (!known) {
    emitter.unsupported("ceil_mode on a dynamic dimension with a stride");
    return false;
  }
  int64_t free = *known + window.low[i] + window.high[i] - reach;
  if (free <= -stride)
    return true; // not even a part of a window
  int64_t count = (free + stride - 1) / stride + 1;
  if ((count - 1) * stride >= *known + window.low[i])
    --count;
  int64_t end = (count - 1) * stride + reach;
  window.high[i] = std::max(window.high[i], end - *known - window.low[i]);
  return true;
}

static SmallVector<NamedAttribute> getWindowAttributes(Emitter &emitter,
                                                       const Window &window) {
  return {emitter.attr("window", window.extents),
          emitter.attr("strides", window.strides),
          emitter.attr("pad_low", window.low),
          emitter.attr("pad_high", window.high),
          emitter.attr("dilations", window.dilations)};
}

Value emitPool(Emitter &emitter, graph::PoolKind kind, Value x,
               const Window &window) {
  SmallVector<NamedAttribute> attributes = getWindowAttributes(emitter, window);
  auto kindAttr = graph::PoolKindAttr::get(emitter.getContext(), kind);
  attributes.push_back(emitter.attr("kind", kindAttr));
  attributes.push_back(emitter.attr("count_low", window.countLow));
  attributes.push_back(emitter.attr("count_high", window.countHigh));
  if (window.countPadding)
    attributes.push_back(emitter.flag("count_padding"));
  return emitter.create<graph::PoolOp>(x, attributes);
}

Value emitConv(Emitter &emitter, Value x, Value filter, const Window &window,
               int64_t groups) {
  auto filters = graph::getConstant(graph::getExtent(filter, 0));
  if (!filters)
    return emitter.unsupported("a filter of dynamic shape");
  SmallVector<NamedAttribute> attributes = getWindowAttributes(emitter, window);
  attributes.push_back(emitter.attr("filters", *filters));
  attributes.push_back(emitter.attr("groups", groups));
  return emitter.create<graph::ConvOp>({x, filter}, attributes);
}

Value addBias(Emitter &emitter, Value x, Value bias) {
  if (!x || !bias)
    return nullptr;
  if (emitter.rank(bias) != 1)
    return emitter.fail("a bias of one element a filter is expected");
  return emitter.add(x, emitter.alongChannels(bias, x));
}

// --- Transposed convolution --------------------------------------------------

/// [channels, filters / groups, window...] as the filter of the convolution
/// that the transposed one is: turned round, channels and filters exchanged.
static Value transposeFilter(Emitter &emitter, Value filter, int64_t groups) {
  auto type = cast<RankedTensorType>(filter.getType());
  SmallVector<int64_t> shape(type.getShape()), steps(type.getRank(), 1);
  if (groups < 1 || shape[0] % groups != 0)
    return emitter.fail("group does not divide the channels");
  SmallVector<AffineExpr> starts;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    steps[axis] = axis < 2 ? 1 : -1;
    starts.push_back(
        emitter.getSizes().constant(axis < 2 ? 0 : shape[axis] - 1));
  }
  auto map =
      AffineMapAttr::get(graph::makeSizeMap(starts, emitter.getContext()));
  Value turned = emitter.create<graph::SliceOp>(
      filter, {emitter.attr("starts", map), emitter.attr("steps", steps)},
      type);
  auto reshape = [&](Value x, ArrayRef<int64_t> leading) {
    graph::Extents extents;
    for (int64_t extent : leading)
      extents.push_back(emitter.getSizes().constant(extent));
    for (int64_t extent : ArrayRef(shape).drop_front(2))
      extents.push_back(emitter.getSizes().constant(extent));
    return emitter.reshape(x, extents);
  };
  int64_t channels = shape[0] / groups, filters = shape[1];
  SmallVector<int64_t> permutation = {0, 2, 1};
  for (int64_t axis = 3; axis <= type.getRank(); ++axis)
    permutation.push_back(axis);
  Value split = reshape(turned, {groups, channels, filters});
  return reshape(emitter.transpose(split, permutation),
                 {groups * filters, channels});
}

/// True if each element of x makes a block of the result of its own.
static bool makesBlocks(const Window &window, ArrayRef<int64_t> extra) {
  auto isZero = [](int64_t n) { return n == 0; };
  return window.extents == window.strides &&
         llvm::all_of(window.dilations, [](int64_t n) { return n == 1; }) &&
         llvm::all_of(window.low, isZero) &&
         llvm::all_of(window.high, isZero) && llvm::all_of(extra, isZero);
}

/// A convolution of single elements with a filter for each element of a block,
/// whose results are then put in their places.
static Value emitBlocks(Emitter &emitter, Value x, Value filter, Window window,
                        int64_t groups) {
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(filter.getType()).getShape());
  if (groups < 1 || shape[0] % groups != 0)
    return emitter.fail("group does not divide the channels");
  int64_t rank = window.getRank(), channels = shape[0] / groups;
  int64_t taps = 1;
  for (int64_t extent : window.extents)
    taps *= extent;
  auto reshape = [&](Value value, ArrayRef<int64_t> shape) {
    graph::Extents extents;
    for (int64_t extent : shape)
      extents.push_back(emitter.getSizes().constant(extent));
    return emitter.reshape(value, extents);
  };
  int64_t filters = groups * shape[1];
  Value split = reshape(filter, {groups, channels, shape[1] * taps});
  SmallVector<int64_t> ones(rank, 1), filterShape = {filters * taps, channels};
  filterShape.append(ones);
  split = reshape(emitter.transpose(split, {0, 2, 1}), filterShape);
  SmallVector<int64_t> block = window.extents;
  window.extents = window.strides = ones;
  Value result = emitConv(emitter, x, split, window, groups);
  if (!result)
    return nullptr;

  // [batch, filter, block..., position...] to positions with their blocks.
  graph::Extents parts = {graph::getExtent(x, 0),
                          emitter.getSizes().constant(filters)};
  graph::Extents merged = parts;
  SmallVector<int64_t> permutation = {0, 1};
  for (int64_t i = 0; i < rank; ++i) {
    parts.push_back(emitter.getSizes().constant(block[i]));
    merged.push_back(graph::getExtent(x, 2 + i) * block[i]);
    permutation.append({2 + rank + i, 2 + i});
  }
  for (int64_t i = 0; i < rank; ++i)
    parts.push_back(graph::getExtent(x, 2 + i));
  return emitter.reshape(
      emitter.transpose(emitter.reshape(result, parts), permutation), merged);
}

/// A convolution of x with zeros between its elements.
static Value emitSpread(Emitter &emitter, Value x, Value filter, Window window,
                        ArrayRef<int64_t> extra, int64_t groups) {
  SmallVector<int64_t> low(2, 0), high(2, 0), interior(2, 0);
  for (int64_t i = 0; i < window.getRank(); ++i) {
    low.push_back(window.getReach(i) - 1 - window.low[i]);
    high.push_back(window.getReach(i) - 1 - window.high[i] + extra[i]);
    interior.push_back(window.strides[i] - 1);
    window.strides[i] = 1;
    window.low[i] = window.high[i] = 0;
  }
  Value spread =
      emitter.pad(x, emitter.constantLike(0, x), low, high, interior);
  Value turned = transposeFilter(emitter, filter, groups);
  if (!spread || !turned)
    return nullptr;
  return emitConv(emitter, spread, turned, window, groups);
}

Value emitTransposedConv(Emitter &emitter, Value x, Value filter,
                         const Window &window, ArrayRef<int64_t> extra,
                         int64_t groups) {
  return makesBlocks(window, extra)
             ? emitBlocks(emitter, x, filter, window, groups)
             : emitSpread(emitter, x, filter, window, extra, groups);
}

} // namespace tcc
