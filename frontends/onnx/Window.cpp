#include "frontends/onnx/Window.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Reads a list of `count` numbers in [min, kMaxWindow] over `values`.
static bool readList(Node &node, StringRef name, int64_t min,
                     MutableArrayRef<int64_t> values) {
  auto given = node.intsAttr(name);
  if (!given)
    return true;
  auto isValid = [&](int64_t n) { return n >= min && n <= kMaxWindow; };
  if (given->size() != values.size() || !llvm::all_of(*given, isValid)) {
    node.fail("attribute '" + name + "' needs " + llvm::Twine(values.size()) +
              " values of at least " + llvm::Twine(min));
    return false;
  }
  llvm::copy(*given, values.begin());
  return true;
}

std::optional<Window> readWindowAttributes(Node &node, int64_t rank,
                                           ArrayRef<int64_t> extents) {
  if (rank < 1) {
    node.fail("an input with a spatial axis is expected");
    return std::nullopt;
  }
  Window window((SmallVector<int64_t>(rank, 1)));
  if (!extents.empty())
    llvm::copy(extents, window.extents.begin());
  else if (!node.findAttr("kernel_shape"))
    node.fail("attribute 'kernel_shape' is missing");
  SmallVector<int64_t> pads(2 * rank, 0);
  if (node.hasFailed() || !readList(node, "kernel_shape", 1, window.extents) ||
      !readList(node, "strides", 1, window.strides) ||
      !readList(node, "dilations", 1, window.dilations) ||
      !readList(node, "pads", 0, pads))
    return std::nullopt;
  for (int64_t i = 0; i < rank; ++i) {
    window.low[i] = window.countLow[i] = pads[i];
    window.high[i] = window.countHigh[i] = pads[rank + i];
    bool isFilterExtent = extents.empty() || extents[i] == window.extents[i];
    if (window.getReach(i) > kMaxWindow || !isFilterExtent) {
      node.fail("kernel_shape does not fit");
      return std::nullopt;
    }
  }
  return window;
}

/// Padding by which the result has ceil(extent / stride) elements; the odd one
/// goes to the end if `isUpper`.
static bool padSame(Node &node, Window &window, int64_t i, AffineExpr extent,
                    bool isUpper) {
  int64_t stride = window.strides[i], reach = window.getReach(i);
  auto known = graph::getConstant(extent);
  if (!known && stride != 1) {
    node.unsupported("auto_pad on a dynamic dimension with a stride");
    return false;
  }
  int64_t rest = known ? (*known + stride - 1) / stride * stride - *known : 0;
  int64_t total = std::max<int64_t>(reach - stride + rest, 0);
  if (known)
    total = std::max<int64_t>(
        ((*known + stride - 1) / stride - 1) * stride + reach - *known, 0);
  window.low[i] = isUpper ? total / 2 : total - total / 2;
  window.high[i] = total - window.low[i];
  window.countLow[i] = window.low[i];
  window.countHigh[i] = window.high[i];
  return true;
}

std::optional<Window> readWindow(Node &node, Value x,
                                 ArrayRef<int64_t> extents) {
  int64_t rank = node.rank(x) - 2;
  auto window = readWindowAttributes(node, rank, extents);
  if (!window)
    return std::nullopt;
  std::string autoPad = node.stringAttr("auto_pad", "NOTSET");
  bool isUpper = autoPad == "SAME_UPPER",
       isSame = isUpper || autoPad == "SAME_LOWER";
  if (!isSame && autoPad != "NOTSET" && autoPad != "VALID") {
    node.fail("auto_pad '" + autoPad + "' is unknown");
    return std::nullopt;
  }
  bool isCeil = node.intAttr("ceil_mode", 0) != 0;
  for (int64_t i = 0; i < rank; ++i) {
    AffineExpr extent = graph::getExtent(x, 2 + i);
    if (autoPad == "VALID")
      window->low[i] = window->high[i] = window->countLow[i] =
          window->countHigh[i] = 0;
    if (isSame && !padSame(node, *window, i, extent, isUpper))
      return std::nullopt;
    if (isCeil && !isSame && !padForCeil(node, *window, i, extent))
      return std::nullopt;
  }
  window->countPadding = node.intAttr("count_include_pad", 0) != 0;
  return window;
}

} // namespace tcc::onnx_import
