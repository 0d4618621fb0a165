// Finds the convolution, or the gradient of its filter, in a kernel.

#include "compiler/passes/graph/fusion/LibraryWork.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {
namespace {

class ConvolutionDescriber {
public:
  ConvolutionDescriber(bool channelsLast, function_ref<bool(Value)> isInput)
      : channelsLast(channelsLast), isInput(isInput) {}

  std::optional<LibraryWork> describe(ConvOp op, Value result);
  std::optional<LibraryWork> describe(ConvFilterGradientOp op, Value result);

private:
  std::optional<WorkOperand> place(StridedInput from, Value tensor, Value like);
  bool placeOperands(LibraryWork &convolution, Operation *op, Value result);
  bool placeEpilogue(LibraryWork &convolution, Value sum,
                     const Epilogue &epilogue);

  bool channelsLast;
  function_ref<bool(Value)> isInput;
};

} // namespace

/// `tensor` walked as `like`, one of the convolution's own, with the channels
/// as axis 1.
std::optional<WorkOperand>
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
  WorkOperand image{from.input, getElementTypeOrSelf(from.input), from.offset,
                    shape, *strides};
  if (channelsLast)
    for (Extents *axes : {&image.extents, &image.strides}) {
      AffineExpr channel = axes->pop_back_val();
      axes->insert(axes->begin() + 1, channel);
    }
  return image;
}

/// Both operands of `op`, and what it sums, stored as `result`.
bool ConvolutionDescriber::placeOperands(LibraryWork &convolution,
                                         Operation *op, Value result) {
  Value x = op->getOperand(0), filter = op->getOperand(1);
  auto images = place(traceInput(x, isInput), x, x);
  auto filters = place(traceInput(filter, isInput), filter, filter);
  auto sums = place({result, getRowMajorStrides(result),
                     getAffineConstantExpr(0, op->getContext())},
                    result, op->getResult(0));
  if (!images || !filters || !sums)
    return false;
  convolution.lhs = *images;
  convolution.rhs = *filters;
  convolution.result = *sums;
  convolution.tf32 = isTf32Allowed(op);
  return true;
}

bool ConvolutionDescriber::placeEpilogue(LibraryWork &convolution, Value sum,
                                         const Epilogue &epilogue) {
  auto read = [&](Value value) {
    return place(traceInput(value, isInput, /*throughCasts=*/true), value, sum);
  };
  SmallVector<WorkOperand> addends;
  for (Value addend : epilogue.addends) {
    auto image = read(addend);
    if (!image)
      return false;
    addends.push_back(*image);
  }
  std::optional<WorkOperand> other;
  if (epilogue.other && !(other = read(epilogue.other)))
    return false;
  addSteps(convolution, epilogue, addends, other, /*stored=*/std::nullopt);
  return true;
}

template <typename Op> static void setWindow(LibraryWork &convolution, Op op) {
  auto set = [](SmallVectorImpl<int64_t> &to, ArrayRef<int64_t> from) {
    to.assign(from.begin(), from.end());
  };
  set(convolution.padLow, op.getPadLow());
  set(convolution.strides, op.getStrides());
  set(convolution.dilations, op.getDilations());
}

std::optional<LibraryWork> ConvolutionDescriber::describe(ConvOp op,
                                                          Value result) {
  auto epilogue = matchEpilogue(result, op.getResult(), isInput);
  if (!epilogue)
    return std::nullopt;
  LibraryWork convolution;
  convolution.kind = format::WorkKind::convolution;
  setWindow(convolution, op);
  convolution.padHigh.assign(op.getPadHigh().begin(), op.getPadHigh().end());
  if (!placeOperands(convolution, op, result) ||
      !placeEpilogue(convolution, op.getResult(), *epilogue))
    return std::nullopt;
  return convolution;
}

/// Padding behind lets as many windows fit as the gradient has places, the same
/// as before where that does; an image that goes on after them is cut.
std::optional<LibraryWork>
ConvolutionDescriber::describe(ConvFilterGradientOp op, Value result) {
  auto epilogue = matchEpilogue(result, op.getResult(), isInput);
  if (!epilogue)
    return std::nullopt;
  LibraryWork convolution;
  convolution.kind = format::WorkKind::filter_gradient;
  setWindow(convolution, op);
  if (!placeOperands(convolution, op, result) ||
      !placeEpilogue(convolution, op.getResult(), *epilogue) ||
      llvm::any_of(op.getPadLow(), [](int64_t pad) { return pad < 0; }))
    return std::nullopt;
  ArrayRef<int64_t> from = op.getX().getType().getShape().drop_front();
  ArrayRef<int64_t> to = op.getGradient().getType().getShape().drop_front();
  for (size_t i = 0; i < op.getWindow().size(); ++i) {
    int64_t low = op.getPadLow()[i], stride = op.getStrides()[i];
    int64_t least = (to[i] - 1) * stride +
                    (op.getWindow()[i] - 1) * op.getDilations()[i] + 1 - low -
                    from[i];
    int64_t high = std::clamp(low, least, least + stride - 1);
    convolution.padHigh.push_back(std::max<int64_t>(high, 0));
    convolution.lhs.extents[i + 2] = getAffineConstantExpr(
        from[i] + std::min<int64_t>(high, 0), op.getContext());
  }
  return convolution;
}

std::optional<LibraryWork>
describeConvolution(Operation *anchor, Value result,
                    function_ref<bool(Value)> isInput) {
  if (auto op = dyn_cast<ConvFilterGradientOp>(anchor))
    return ConvolutionDescriber(/*channelsLast=*/true, isInput)
        .describe(op, result);
  auto op = dyn_cast<ConvOp>(anchor);
  if (!op || op.getPackedFilter() ||
      op.getKernelKind() != KernelKind::contraction)
    return std::nullopt;
  // A window as large as an image: libraries have nothing fast.
  constexpr int64_t kMaxTaps = 256; // of patches of 16 x 16
  int64_t taps = 1;
  for (int64_t extent : op.getWindow())
    taps *= extent;
  if (taps > kMaxTaps)
    return std::nullopt;
  return ConvolutionDescriber(op.getChannelsLast(), isInput)
      .describe(op, result);
}

} // namespace tcc::fusion
