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

Value emitTransposedConv(Emitter &emitter, Value x, Value filter, Window window,
                         ArrayRef<int64_t> extra, int64_t groups) {
  for (auto [pad, more] : llvm::zip_equal(window.high, extra))
    pad -= more;
  SmallVector<NamedAttribute> attributes = getWindowAttributes(emitter, window);
  attributes.push_back(emitter.attr("groups", groups));
  return emitter.create<graph::ConvTransposeOp>({x, filter}, attributes);
}

} // namespace tcc
