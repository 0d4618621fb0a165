#include "frontends/onnx/Activations.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"
#include "frontends/onnx/Window.h"

using namespace mlir;

namespace tcc::onnx_import {

/// The spatial extents of a filter [filters, channels, window...].
static std::optional<SmallVector<int64_t>> getFilterWindow(Node &node, Value x,
                                                           Value filter) {
  if (!x || !filter)
    return std::nullopt;
  auto type = cast<RankedTensorType>(filter.getType());
  if (type.getRank() != node.rank(x) || type.getRank() < 3) {
    node.fail("input and filter of one rank, 3 or more, are expected");
    return std::nullopt;
  }
  if (!type.hasStaticShape()) {
    node.unsupported("a filter of dynamic shape");
    return std::nullopt;
  }
  return SmallVector<int64_t>(type.getShape().drop_front(2));
}

/// The convolution of inputs 0 and 1, plus input 2 if it is there.
static Value emitBiasedConv(Node &node) {
  Value x = node.input(0), filter = node.input(1);
  auto extents = getFilterWindow(node, x, filter);
  auto window = extents ? readWindow(node, x, *extents) : std::nullopt;
  if (!window)
    return nullptr;
  Value result = emitConv(node, x, filter, *window, node.intAttr("group", 1));
  return node.hasInput(2) ? addBias(node, result, node.input(2)) : result;
}

static void importConv(Node &node) { node.setResult(0, emitBiasedConv(node)); }

/// activation(conv(x) + z): what onnxruntime makes of a block of a ResNet.
static void importFusedConv(Node &node) {
  Value result = emitBiasedConv(node);
  if (node.hasInput(3)) {
    Value z = node.input(3);
    if (result && z && node.extents(z) != node.extents(result))
      return (void)node.fail("the sum has another shape than the result");
    result = node.add(result, z);
  }
  auto parameters = node.floatsAttr("activation_params");
  node.setResult(
      0, applyFusedActivation(node, parameters.value_or(SmallVector<double>()),
                              result));
}

// --- Transposed convolution --------------------------------------------------

/// Padding of a transposed convolution: given, or what makes output_shape or
/// extent * stride.
static bool padTransposed(Node &node, Value x, Window &window,
                          ArrayRef<int64_t> extra) {
  auto outputShape = node.intsAttr("output_shape");
  std::string autoPad = node.stringAttr("auto_pad", "NOTSET");
  bool isSame = autoPad == "SAME_UPPER" || autoPad == "SAME_LOWER";
  int64_t rank = window.getRank();
  if (outputShape && int64_t(outputShape->size()) == rank + 2)
    outputShape->erase(outputShape->begin(), outputShape->begin() + 2);
  if (outputShape && int64_t(outputShape->size()) != rank)
    return node.fail("output_shape needs " + llvm::Twine(rank) + " values") !=
           nullptr;
  for (int64_t i = 0; i < rank && (outputShape || isSame); ++i) {
    auto extent = graph::getConstant(graph::getExtent(x, 2 + i));
    if (!extent)
      return node.unsupported("auto_pad or output_shape on a dynamic "
                              "dimension") != nullptr;
    int64_t target =
        outputShape ? (*outputShape)[i] : *extent * window.strides[i];
    int64_t full =
        (*extent - 1) * window.strides[i] + extra[i] + window.getReach(i);
    if (target < 0 || target > full + kMaxWindow)
      return node.fail("output_shape is out of range") != nullptr;
    int64_t total = std::max<int64_t>(full - target, 0);
    bool isUpper = autoPad == "SAME_UPPER";
    window.low[i] = isUpper ? total / 2 : total - total / 2;
    window.high[i] = full - target - window.low[i];
  }
  return true;
}

static void importConvTranspose(Node &node) {
  Value x = node.input(0), filter = node.input(1);
  auto extents = getFilterWindow(node, x, filter);
  auto window = extents ? readWindowAttributes(node, node.rank(x) - 2, *extents)
                        : std::nullopt;
  if (!window)
    return;
  int64_t rank = window->getRank(), groups = node.intAttr("group", 1);
  SmallVector<int64_t> extra =
      node.intsAttr("output_padding").value_or(SmallVector<int64_t>(rank, 0));
  bool isValid =
      llvm::all_of(extra, [](int64_t n) { return n >= 0 && n < kMaxWindow; });
  if (int64_t(extra.size()) != rank || !isValid)
    return (void)node.fail("output_padding is malformed");
  if (!padTransposed(node, x, *window, extra))
    return;
  Value result = emitTransposedConv(node, x, filter, *window, extra, groups);
  node.setResult(0, node.hasInput(2) ? addBias(node, result, node.input(2))
                                     : result);
}

// --- Blocks ------------------------------------------------------------------

/// The number of blocks along each axis of an image; empty after failing.
static SmallVector<int64_t> countBlocks(Node &node, ArrayRef<int64_t> image,
                                        const Window &window) {
  SmallVector<int64_t> counts;
  for (auto [i, extent] : llvm::enumerate(image)) {
    int64_t padded = extent + window.low[i] + window.high[i];
    if (extent < 1 || extent > kMaxWindow || padded < window.getReach(i)) {
      node.fail("image_shape is out of range");
      return {};
    }
    counts.push_back((padded - window.getReach(i)) / window.strides[i] + 1);
  }
  return counts;
}

/// The blocks' elements at `tap`, each where it lies in the image, else 0.
static Value spreadTap(Node &node, Value blocks, ArrayRef<int64_t> image,
                       const Window &window, int64_t tap) {
  int64_t rank = window.getRank(), position = tap;
  SmallVector<int64_t> low(rank + 2, 0), high(low), between(low);
  Value part = node.squeeze(node.slice(blocks, 2, tap, 1), {2});
  for (int64_t i = rank - 1; i >= 0 && part; --i) {
    int64_t offset = position % window.extents[i];
    position /= window.extents[i];
    int64_t count = *graph::getConstant(graph::getExtent(part, i + 2));
    between[i + 2] = window.strides[i] - 1;
    low[i + 2] = offset * window.dilations[i] - window.low[i];
    high[i + 2] = image[i] - low[i + 2] - ((count - 1) * window.strides[i] + 1);
  }
  return node.pad(part, node.constantLike(0, blocks), low, high, between);
}

/// Where the elements of blocks lie in an image that a run computes, [tap,
/// position]: flat positions in it, and behind it for what is outside. `image`,
/// `block` and `counts` are i64 scalars, one a spatial axis.
static Value findPlaces(Node &node, const Window &window, ArrayRef<Value> image,
                        ArrayRef<Value> block, ArrayRef<Value> counts,
                        AffineExpr taps, AffineExpr positions) {
  AffineExpr one = node.getSizes().constant(1);
  Value zero = index(node, 0), scale = index(node, 1);
  Type type = node.elementType(zero);
  Value tap = node.iota({taps, one}, 0, type);
  Value position = node.iota({one, positions}, 1, type);
  Value place = zero, isInside;
  auto split = [&](Value &whole, Value extent) {
    Value divisor = node.max(extent, index(node, 1));
    Value rest = node.pointwise<graph::RemOp>({whole, divisor});
    whole = node.div(whole, divisor);
    return rest;
  };
  for (int64_t axis = window.getRank() - 1; axis >= 0; --axis) {
    Value at = node.add(
        node.mul(split(tap, block[axis]), index(node, window.dilations[axis])),
        node.mul(split(position, counts[axis]),
                 index(node, window.strides[axis])));
    at = node.sub(at, index(node, window.low[axis]));
    Value isHere = node.pointwise<graph::AndOp>(
        {node.compare(graph::CompareKind::ge, at, zero),
         node.compare(graph::CompareKind::lt, at, image[axis])});
    isInside =
        isInside ? node.create<graph::AndOp>({isInside, isHere}) : isHere;
    place = node.add(place, node.mul(at, scale));
    scale = node.mul(scale, image[axis]);
  }
  return node.select(isInside, place, scale);
}

/// The positions of blocks along each axis of an image.
static SmallVector<Value> countPositions(Node &node, const Window &window,
                                         ArrayRef<Value> image,
                                         ArrayRef<Value> block) {
  Value one = index(node, 1);
  SmallVector<Value> counts;
  for (int64_t axis = 0; axis < window.getRank(); ++axis) {
    for (Value extent : {image[axis], block[axis]})
      node.require(node.compare(graph::CompareKind::ge, extent, one),
                   "image_shape or block_shape is out of range");
    Value reach = node.mul(node.sub(block[axis], one),
                           index(node, window.dilations[axis]));
    Value padded = node.add(
        image[axis], index(node, window.low[axis] + window.high[axis] - 1));
    Value steps =
        node.div(node.sub(padded, reach), index(node, window.strides[axis]));
    counts.push_back(node.max(node.add(steps, one), index(node, 0)));
  }
  return counts;
}

/// The same as importCol2Im where only a run knows the image or the block: all
/// elements are added where they lie.
static void addUpAtRunTime(Node &node, Value x) {
  SmallVector<SizeElement> shape = node.elements(node.input(1));
  SmallVector<Value> image, block;
  for (const SizeElement &extent : shape)
    image.push_back(node.scalar(extent));
  for (const SizeElement &extent : node.elements(node.input(2)))
    block.push_back(node.scalar(extent));
  SmallVector<int64_t> ones(image.size(), 1);
  auto window = readWindowAttributes(node, image.size(), ones);
  if (!window || node.hasFailed())
    return;
  if (node.rank(x) != 3 || block.size() != image.size())
    return (void)node.fail("an input of rank 3 and one extent an axis are "
                           "expected");
  graph::Extents own = node.extents(x);
  SmallVector<Value> counts = countPositions(node, *window, image, block);
  node.require(node.compare(graph::CompareKind::eq, node.multiplySizes(counts),
                            node.size(own[2])),
               "the positions of the blocks do not fit the image");
  Value taps = node.multiplySizes(block);
  Value channels = node.div(node.size(own[1]), node.max(taps, index(node, 1)));
  SmallVector<SizeElement> split = {{own[0], nullptr},
                                    {AffineExpr(), channels},
                                    {AffineExpr(), taps},
                                    {own[2], nullptr}};
  std::string name = node.getResultName();
  Value blocks = reshapeChecked(node, x, split, name + ".blocks");
  if (!blocks)
    return;
  graph::Extents extents = node.extents(blocks);
  const Sizes &sizes = node.getSizes();
  int64_t most =
      std::max<int64_t>(sizes.getMaxElements({extents[0], extents[1]}), 1);
  graph::Extents result =
      node.readShape(shape, name, std::max<int64_t>(kUsualElements / most, 1));
  if (node.hasFailed())
    return;
  AffineExpr elements = graph::getNumElements(result, node.getContext());
  graph::Extents flat = {extents[0], extents[1], extents[2] * extents[3]};
  Value zeros = node.broadcast(node.constantLike(0, x),
                               {extents[0], extents[1], elements + 1});
  SmallVector<Value> bounded;
  for (AffineExpr extent : result)
    bounded.push_back(node.size(extent));
  Value places =
      findPlaces(node, *window, bounded, block, counts, extents[2], extents[3]);
  auto kind =
      graph::ScatterKindAttr::get(node.getContext(), graph::ScatterKind::add);
  Value sum = node.create<graph::ScatterElementsOp>(
      {zeros, node.reshape(node.broadcast(places, extents), flat),
       node.reshape(blocks, flat)},
      {node.attr("axis", 2L), node.attr("kind", kind)});
  result.insert(result.begin(), {extents[0], extents[1]});
  Value inside = node.slice(sum, 2, node.getSizes().constant(0), elements);
  node.setResult(0, node.reshape(inside, result));
}

/// Blocks [batch, channels * block, positions] added up to an image.
static void importCol2Im(Node &node) {
  Value x = node.input(0);
  if (x && (node.isComputed(1) || node.isComputed(2)))
    return addUpAtRunTime(node, x);
  auto image = node.requireInts(1, "image_shape");
  auto block = node.requireInts(2, "block_shape");
  if (!x || !image || !block)
    return;
  auto isExtent = [](int64_t n) { return n >= 1 && n <= kMaxWindow; };
  if (node.rank(x) != 3 || block->size() != image->size() ||
      !llvm::all_of(*block, isExtent))
    return (void)node.fail("an input of rank 3 and one extent an axis are "
                           "expected");
  auto window = readWindowAttributes(node, image->size(), *block);
  if (!window)
    return;
  const Sizes &sizes = node.getSizes();
  graph::Extents blockExtents, split = {graph::getExtent(x, 0)};
  for (int64_t extent : *block)
    blockExtents.push_back(sizes.constant(extent));
  Size taps = sizes.product(blockExtents);
  auto counts = countBlocks(node, *image, *window);
  Size channels =
      taps ? sizes.divideProducts(graph::getExtent(x, 1), *taps) : std::nullopt;
  if (!channels || node.hasFailed())
    return (void)node.fail("the block does not divide the channels");
  auto tapCount = graph::getConstant(*taps);
  if (!tapCount || *tapCount > kMaxContent)
    return (void)node.unsupported("a block of more than 4096 elements");
  split.append({*channels, *taps});
  for (int64_t count : counts)
    split.push_back(sizes.constant(count));
  Value blocks = node.reshape(x, split), sum;
  for (int64_t tap = 0; tap < *tapCount && blocks; ++tap) {
    Value part = spreadTap(node, blocks, *image, *window, tap);
    sum = sum ? node.add(sum, part) : part;
  }
  node.setResult(0, sum);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Col2Im", 18, last, importCol2Im},
    {"Conv", 1, last, importConv},
    {"ConvTranspose", 1, last, importConvTranspose},
    {"FusedConv", 1, 1, importFusedConv, kOrtDomain},
};

ArrayRef<OpRow> getConvolutionOps() { return rows; }

} // namespace tcc::onnx_import
