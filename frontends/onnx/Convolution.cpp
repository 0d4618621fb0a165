#include "frontends/onnx/Activations.h"
#include "frontends/onnx/Ops.h"
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

/// Blocks [batch, channels * block, positions] added up to an image.
static void importCol2Im(Node &node) {
  Value x = node.input(0);
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
