#include "compiler/passes/graph/fusion/LibraryConvolution.h"

#include "compiler/passes/graph/fusion/Epilogue.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {
namespace {

class ConvolutionDescriber {
public:
  ConvolutionDescriber(ConvOp op, function_ref<bool(Value)> isInput)
      : op(op), isInput(isInput) {}

  std::optional<LibraryConvolution> describe(Value result);

private:
  std::optional<StridedImage> place(StridedInput from, Value tensor,
                                    Value like);
  bool placeAddends(LibraryConvolution &convolution, ArrayRef<Value> addends);
  bool isBias(const StridedImage &image) const;

  ConvOp op;
  function_ref<bool(Value)> isInput;
};

} // namespace

/// `tensor` walked as `like`, one of the convolution's own, with the channels
/// as axis 1.
std::optional<StridedImage>
ConvolutionDescriber::place(StridedInput from, Value tensor, Value like) {
  Extents shape = getExtents(like);
  std::optional<Extents> strides;
  if (from.input)
    strides = reshapeStrides(from.strides, getExtents(tensor), shape);
  // Libraries walk forward.
  auto isNegative = [](AffineExpr stride) {
    return getConstant(stride).value_or(0) < 0;
  };
  if (!strides || llvm::any_of(*strides, isNegative))
    return std::nullopt;
  StridedImage image{from.input, from.offset, shape, *strides};
  if (op.getChannelsLast())
    for (Extents *axes : {&image.extents, &image.strides}) {
      AffineExpr channel = axes->pop_back_val();
      axes->insert(axes->begin() + 1, channel);
    }
  return image;
}

/// Repeated but along the channels, whose elements are adjacent.
bool ConvolutionDescriber::isBias(const StridedImage &image) const {
  for (auto [axis, stride] : llvm::enumerate(image.strides))
    if (getConstant(stride) != (axis == 1 ? 1 : 0) &&
        getConstant(image.extents[axis]) != 1)
      return false;
  return true;
}

bool ConvolutionDescriber::placeAddends(LibraryConvolution &convolution,
                                        ArrayRef<Value> addends) {
  Type element = getElementTypeOrSelf(convolution.result.input);
  for (Value addend : addends) {
    auto image = place(traceInput(addend, isInput, /*throughCasts=*/true),
                       addend, op.getResult());
    if (!image || getElementTypeOrSelf(image->input) != element)
      return false;
    bool toBias = !convolution.bias && isBias(*image);
    auto &taken = toBias ? convolution.bias : convolution.addend;
    if (taken)
      return false;
    taken = *image;
  }
  return true;
}

std::optional<LibraryConvolution> ConvolutionDescriber::describe(Value result) {
  auto epilogue = matchEpilogue(result, op.getResult(), isInput);
  if (!epilogue || epilogue->scale != 1 ||
      (epilogue->activation && !isa<ReluOp>(epilogue->activation)))
    return std::nullopt;
  Value x = op.getX(), filter = op.getFilter();
  auto images = place(traceInput(x, isInput), x, x);
  auto filters = place(traceInput(filter, isInput), filter, filter);
  auto sums = place({result, getRowMajorStrides(result),
                     getAffineConstantExpr(0, op.getContext())},
                    result, op.getResult());
  if (!images || !filters || !sums)
    return std::nullopt;
  Type element = getElementTypeOrSelf(x), stored = getElementTypeOrSelf(result);
  bool isTf32 = element.isF32() && op.getTf32();
  if ((!element.isF16() && !element.isBF16() && !isTf32) ||
      element != getElementTypeOrSelf(filter) ||
      (stored != element && !stored.isF32()))
    return std::nullopt;
  LibraryConvolution convolution{op,
                                 *images,
                                 *filters,
                                 *sums,
                                 std::nullopt,
                                 std::nullopt,
                                 epilogue->activation,
                                 isTf32};
  if (!placeAddends(convolution, epilogue->addends))
    return std::nullopt;
  return convolution;
}

std::optional<LibraryConvolution>
describeConvolution(Operation *anchor, Value result,
                    function_ref<bool(Value)> isInput) {
  auto op = dyn_cast<ConvOp>(anchor);
  if (!op || op.getPackedFilter() ||
      op.getKernelKind() != KernelKind::contraction)
    return std::nullopt;
  // As large as an image is the window of a filter's gradient, for which
  // libraries have another op.
  constexpr int64_t kMaxTaps = 128;
  int64_t taps = 1;
  for (int64_t extent : op.getWindow())
    taps *= extent;
  if (taps > kMaxTaps)
    return std::nullopt;
  return ConvolutionDescriber(op, isInput).describe(result);
}

} // namespace tcc::fusion
