#include "frontends/Windows.h"
#include "frontends/aten/Call.h"

using namespace mlir;
using tcc::graph::PoolKind;

namespace tcc::aten {

/// Windows over the last `rank` axes of x; no stride means the window's extent.
static std::optional<Window> readWindow(Call &call, Value x, int64_t rank) {
  if (!x)
    return std::nullopt;
  Window window(call.integers("kernel_size", rank));
  window.strides = window.extents;
  const Item &stride = call.get("stride");
  if (!stride.isSequence() || !stride.items->empty())
    window.strides = call.integers("stride", rank);
  if (call.getSchema().find("dilation"))
    window.dilations = call.integers("dilation", rank);
  window.low = window.high = call.integers("padding", rank);
  window.countLow = window.countHigh = window.low;
  for (int64_t i = 0; i < rank && !call.hasFailed(); ++i) {
    auto isIn = [](int64_t n, int64_t min) {
      return n >= min && n <= kMaxWindow;
    };
    if (!isIn(window.extents[i], 1) || !isIn(window.strides[i], 1) ||
        !isIn(window.dilations[i], 1) || !isIn(window.low[i], 0) ||
        window.getReach(i) > kMaxWindow)
      call.fail("the window is out of range");
    else if (call.isTrue("ceil_mode"))
      padForCeil(call, window, i, graph::getExtent(x, 2 + i));
  }
  if (call.hasFailed())
    return std::nullopt;
  return window;
}

/// self [batch, channel, ...]; without a batch it gets one.
static Value readImage(Call &call, int64_t rank) {
  Value x = call.tensor("self");
  if (x && call.rank(x) == rank + 1)
    return call.unsqueeze(x, {0});
  if (x && call.rank(x) != rank + 2)
    return call.fail("an input of rank " + llvm::Twine(rank + 2) +
                     " is expected");
  return x;
}

static void addImage(Call &call, Value y, int64_t rank) {
  bool lacksBatch = call.rank(call.tensor("self")) == rank + 1;
  call.give(lacksBatch ? call.squeeze(y, {0}) : y);
}

template <int rank> static void importMaxPool(Call &call) {
  Value x = readImage(call, rank);
  if (auto window = readWindow(call, x, rank))
    addImage(call, emitPool(call, PoolKind::max, x, *window), rank);
}

template <int rank> static void importAveragePool(Call &call) {
  Value x = readImage(call, rank);
  auto window = readWindow(call, x, rank);
  if (!window)
    return;
  bool hasDivisor =
      call.getSchema().find("divisor_override") && call.has("divisor_override");
  window->countPadding = call.isTrue("count_include_pad");
  Value y = emitPool(call, hasDivisor ? PoolKind::sum : PoolKind::average, x,
                     *window);
  if (hasDivisor)
    y = call.div(
        y, call.constantLike(double(call.integer("divisor_override")), y));
  addImage(call, y, rank);
}

/// Windows that give `output_size` results; all of one extent and stride.
template <PoolKind kind, int rank> static void importAdaptive(Call &call) {
  Value x = readImage(call, rank);
  if (!x)
    return;
  SmallVector<int64_t> axes, extents;
  const Item &sizes = call.get("output_size");
  bool isWhole = true;
  for (int64_t i = 0; i < rank; ++i) {
    axes.push_back(2 + i);
    const Item &size =
        sizes.isSequence() && int64_t(sizes.items->size()) == rank
            ? (*sizes.items)[i]
            : sizes;
    auto count = size.is(Item::Kind::none)
                     ? std::optional(graph::getExtent(x, 2 + i))
                     : call.getSize(size);
    if (!count)
      return;
    isWhole &= graph::getConstant(*count) == 1;
    auto all = graph::getConstant(graph::getExtent(x, 2 + i));
    auto known = graph::getConstant(*count);
    if (all && known && *known > 0 && *all % *known == 0)
      extents.push_back(*all / *known);
  }
  if (isWhole) // the mean of a plane, as exported models have it
    return addImage(call,
                    kind == PoolKind::max
                        ? call.reduce(graph::ReduceKind::max, x, axes, true)
                        : call.mean(x, axes),
                    rank);
  if (int64_t(extents.size()) != rank)
    return (void)call.unsupported(
        "an output size that does not divide the input's");
  Window window(extents);
  window.strides = window.extents;
  addImage(call, emitPool(call, kind, x, window), rank);
}

static const OpRow rows[] = {
    {"adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor",
     importAdaptive<PoolKind::average, 1>},
    {"adaptive_avg_pool2d(Tensor self, Any output_size) -> Tensor",
     importAdaptive<PoolKind::average, 2>},
    {"adaptive_avg_pool3d(Tensor self, Any output_size) -> Tensor",
     importAdaptive<PoolKind::average, 3>},
    {"adaptive_max_pool2d(Tensor self, Any output_size) -> Tensor",
     importAdaptive<PoolKind::max, 2>},
    {"avg_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
     "padding=0, bool ceil_mode=False, bool count_include_pad=True) -> Tensor",
     importAveragePool<1>},
    {"avg_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
     "padding=0, bool ceil_mode=False, bool count_include_pad=True, int? "
     "divisor_override=None) -> Tensor",
     importAveragePool<2>},
    {"avg_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
     "padding=0, bool ceil_mode=False, bool count_include_pad=True, int? "
     "divisor_override=None) -> Tensor",
     importAveragePool<3>},
    {"max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] "
     "padding=0, int[1] dilation=1, bool ceil_mode=False) -> Tensor",
     importMaxPool<1>},
    {"max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] "
     "padding=0, int[2] dilation=1, bool ceil_mode=False) -> Tensor",
     importMaxPool<2>},
    {"max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] "
     "padding=0, int[3] dilation=1, bool ceil_mode=False) -> Tensor",
     importMaxPool<3>},
};

ArrayRef<OpRow> getPoolingOps() { return rows; }

} // namespace tcc::aten
