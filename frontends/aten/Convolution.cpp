#include "frontends/Windows.h"
#include "frontends/aten/Call.h"

using namespace mlir;

namespace tcc::aten {

/// Checks extents, strides and paddings that a file gives.
static bool checkWindow(Call &call, const Window &window) {
  auto isIn = [](ArrayRef<int64_t> numbers, int64_t min) {
    return llvm::all_of(numbers,
                        [&](int64_t n) { return n >= min && n <= kMaxWindow; });
  };
  bool isValid = isIn(window.extents, 1) && isIn(window.strides, 1) &&
                 isIn(window.dilations, 1) && isIn(window.low, 0) &&
                 isIn(window.high, 0);
  for (int64_t i = 0; i < window.getRank() && isValid; ++i)
    isValid = window.getReach(i) <= kMaxWindow;
  return isValid ||
         call.fail("stride, padding or dilation is out of range") != nullptr;
}

/// The window of `filter` [filters, channels, window...].
static std::optional<Window> readWindow(Call &call, Value x, Value filter) {
  if (!x || !filter)
    return std::nullopt;
  auto type = cast<RankedTensorType>(filter.getType());
  if (type.getRank() != call.rank(x) || type.getRank() < 3) {
    call.fail("input and filter of one rank, 3 or more, are expected");
    return std::nullopt;
  }
  if (!type.hasStaticShape()) {
    call.unsupported("a filter of dynamic shape");
    return std::nullopt;
  }
  Window window(SmallVector<int64_t>(type.getShape().drop_front(2)));
  int64_t rank = window.getRank();
  window.strides = call.integers("stride", rank);
  window.dilations = call.integers("dilation", rank);
  return window;
}

/// Padding as numbers, "valid" or "same".
static void readPadding(Call &call, Window &window) {
  int64_t rank = window.getRank();
  if (!call.get("padding").is(Item::Kind::text)) {
    window.low = call.integers("padding", rank);
    window.high = window.low;
    return;
  }
  std::string mode = call.text("padding");
  if (mode != "same" && mode != "valid")
    return (void)call.fail("padding must be 'same' or 'valid'");
  for (int64_t i = 0; i < rank && mode == "same"; ++i) {
    int64_t total = window.getReach(i) - 1;
    window.low[i] = total / 2;
    window.high[i] = total - total / 2;
  }
}

static void importTransposed(Call &call, Value x, Value filter, Window window) {
  int64_t rank = window.getRank();
  SmallVector<int64_t> extra = call.integers("output_padding", rank);
  bool isValid =
      llvm::all_of(extra, [](int64_t n) { return n >= 0 && n < kMaxWindow; });
  if (!isValid)
    return (void)call.fail("output_padding is out of range");
  Value y = emitTransposedConv(call, x, filter, window, extra,
                               call.integer("groups"));
  Value bias = call.optional("bias");
  call.give(bias ? addBias(call, y, bias) : y);
}

static void importConv(Call &call) {
  Value x = call.tensor("input"), filter = call.tensor("weight");
  bool lacksBatch = x && filter && call.rank(x) + 1 == call.rank(filter);
  if (lacksBatch)
    x = call.unsqueeze(x, {0});
  auto window = readWindow(call, x, filter);
  if (!window)
    return;
  readPadding(call, *window);
  if (call.hasFailed() || !checkWindow(call, *window))
    return;
  if (call.getSchema().find("transposed") && call.isTrue("transposed"))
    return importTransposed(call, x, filter, *window);
  Value y = emitConv(call, x, filter, *window, call.integer("groups"));
  if (Value bias = call.optional("bias"))
    y = addBias(call, y, bias);
  call.give(lacksBatch ? call.squeeze(y, {0}) : y);
}

static void importConvTranspose(Call &call) {
  Value x = call.tensor("input"), filter = call.tensor("weight");
  auto window = readWindow(call, x, filter);
  if (!window)
    return;
  readPadding(call, *window);
  if (!call.hasFailed() && checkWindow(call, *window))
    importTransposed(call, x, filter, *window);
}

static const OpRow rows[] = {
    {"_convolution(Tensor input, Tensor weight, Tensor? bias, int[1] stride, "
     "int[1] padding, int[1] dilation, bool transposed, int[1] output_padding, "
     "int groups, bool benchmark, bool deterministic, bool cudnn_enabled, bool "
     "allow_tf32=False) -> Tensor",
     importConv},
    {"_convolution_mode(Tensor input, Tensor weight, Tensor? bias, int[1] "
     "stride, str padding, int[1] dilation, int groups) -> Tensor",
     importConv},
    {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
     "int[1] padding=0, int[1] dilation=1, int groups=1) -> Tensor",
     importConv},
    {"conv1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] stride=1, "
     "str padding=valid, int[1] dilation=1, int groups=1) -> Tensor",
     importConv},
    {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
     "int[2] padding=0, int[2] dilation=1, int groups=1) -> Tensor",
     importConv},
    {"conv2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] stride=1, "
     "str padding=valid, int[2] dilation=1, int groups=1) -> Tensor",
     importConv},
    {"conv3d(Tensor input, Tensor weight, Tensor? bias=None, int[3] stride=1, "
     "int[3] padding=0, int[3] dilation=1, int groups=1) -> Tensor",
     importConv},
    {"conv_transpose1d(Tensor input, Tensor weight, Tensor? bias=None, int[1] "
     "stride=1, int[1] padding=0, int[1] output_padding=0, int groups=1, "
     "int[1] dilation=1) -> Tensor",
     importConvTranspose},
    {"conv_transpose2d(Tensor input, Tensor weight, Tensor? bias=None, int[2] "
     "stride=1, int[2] padding=0, int[2] output_padding=0, int groups=1, "
     "int[2] dilation=1) -> Tensor",
     importConvTranspose},
    {"convolution(Tensor input, Tensor weight, Tensor? bias, int[1] stride, "
     "int[1] padding, int[1] dilation, bool transposed, int[1] "
     "output_padding, int groups) -> Tensor",
     importConv},
};

ArrayRef<OpRow> getConvolutionOps() { return rows; }

} // namespace tcc::aten
