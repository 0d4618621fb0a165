//===- WindowKernel.cpp - Pooling, convolution of narrow groups -----------===//

#include "compiler/codegen/cpu/Window.h"
#include "compiler/codegen/kernel/MatrixKernel.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::graph;
using tcc::cpu::KernelBuilder;

namespace tcc::codegen {

namespace {

/// What conv and pool share: an op that slides a window over x.
struct WindowPlan {
  Operation *op;
  Value x, result;
  ArrayRef<int64_t> window, strides, dilations, padLow;
  Type elementType, partialType;
  /// A group of so many channels reads so many of x.
  int64_t groupSize = 1, groupInputs = 1;
  bool channelsLast = false;
  int64_t channelAxis, firstSpatialAxis;
  int64_t unitsPerTask;

  explicit WindowPlan(FusedOp region);
  /// Planes, or rows of pixels where channels come last.
  AffineExpr getUnits() const {
    int64_t outerAxes = channelsLast ? window.size() : 2;
    return getNumElements(ArrayRef(getExtents(result)).take_front(outerAxes),
                          op->getContext());
  }
  SmallVector<Value> getIndices(Value image, Value channel,
                                ValueRange position) const {
    SmallVector<Value> at(position);
    at.insert(at.begin(), image);
    at.insert(at.begin() + channelAxis, channel);
    return at;
  }

private:
  template <typename Op> void takeWindow(Op op) {
    x = op.getX();
    window = op.getWindow();
    strides = op.getStrides();
    dilations = op.getDilations();
    padLow = op.getPadLow();
    channelsLast = op.getChannelsLast();
    channelAxis = op.getChannelAxis();
    firstSpatialAxis = op.getFirstSpatialAxis();
  }
};

} // namespace

WindowPlan::WindowPlan(FusedOp region) : op(getAnchor(region)) {
  result = op->getResult(0);
  elementType = getElementTypeOrSelf(result);
  if (auto conv = dyn_cast<ConvOp>(op)) {
    takeWindow(conv);
    groupSize = conv.getFilters() / conv.getGroups();
    groupInputs = conv.getGroupChannels();
    partialType = getSumType(elementType);
  } else {
    auto pool = cast<PoolOp>(op);
    takeWindow(pool);
    partialType = getSumType(elementType);
    if (auto integer = dyn_cast<IntegerType>(elementType))
      if (pool.getKind() == PoolKind::max)
        partialType = IntegerType::get(op->getContext(), integer.getWidth());
  }
  int64_t work = groupInputs;
  for (int64_t extent : window)
    work *= extent;
  int64_t rank = getExtents(result).size();
  for (int64_t axis = channelsLast ? rank - 2 : 2; axis < rank; ++axis)
    work *= getConstant(getExtent(result, axis)).value_or(64);
  unitsPerTask = cpu::chooseWindowGrain(work);
}

namespace {

class WindowKernel {
public:
  WindowKernel(KernelBuilder &b, KernelFrame &frame)
      : b(b), frame(frame), plan(frame.region) {}
  void emit();

private:
  KernelBuilder &b;
  KernelFrame &frame;
  WindowPlan plan;

  Value size(OpBuilder &b, AffineExpr expression) {
    return frame.elements.size(b, frame.loc, expression);
  }
  cpu::WindowInput makeInput();
  TypedAttr initialValue();
  Value combine(KernelBuilder &b, Value partial, Value input, Value channel,
                ValueRange tap);
  Value combineChannels(KernelBuilder &b, Value partial, Value input,
                        Value firstChannel, ValueRange tap,
                        int64_t groupChannel, Value mask);
  Value weightNumber(KernelBuilder &b, ValueRange tap, int64_t groupChannel);
  Value loadWeight(KernelBuilder &b, Value channel, ValueRange tap,
                   int64_t groupChannel);
  Value loadWeights(KernelBuilder &b, Value firstChannel, ValueRange tap,
                    int64_t groupChannel, int64_t lanes, Value mask);
  Value join(KernelBuilder &b, Value partial, Value input,
             function_ref<Value()> weight);
  Value maximum(KernelBuilder &b, Value x, Value y);
  Value countElements(KernelBuilder &b, PoolOp op, ValueRange position);
  void emitEpilogue(KernelBuilder &b, Value partial, Value image, Value channel,
                    ValueRange position);
};

} // namespace

static bool isMaximum(Operation *op) {
  auto pool = dyn_cast<PoolOp>(op);
  return pool && pool.getKind() == PoolKind::max;
}

cpu::WindowInput WindowKernel::makeInput() {
  cpu::WindowInput input;
  if (isa<BlockArgument>(plan.x)) {
    input.base = getMemory(frame, plan.x);
    input.type = input.base.element;
    return input;
  }
  Type element = getElementTypeOrSelf(plan.x);
  bool isNarrowFloat = isa<FloatType>(element) && !element.isF64();
  input.type = plan.partialType;
  if (isNarrowFloat)
    input.type = b.getF32Type();
  else if (auto integer = dyn_cast<IntegerType>(element))
    input.type = b.getIntegerType(integer.getWidth());
  input.element = [this](KernelBuilder &b, Value image, Value channel,
                         ValueRange position) {
    return frame.elements.element(b, frame.loc, plan.x,
                                  plan.getIndices(image, channel, position));
  };
  return input;
}

TypedAttr WindowKernel::initialValue() {
  if (!isMaximum(plan.op))
    return cast<TypedAttr>(b.getZeroAttr(plan.partialType));
  if (auto type = dyn_cast<FloatType>(plan.partialType))
    return b.getFloatAttr(
        type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true));
  unsigned width = plan.partialType.getIntOrFloatBitWidth();
  bool isUnsigned = plan.elementType.isUnsignedInteger();
  return b.getIntegerAttr(plan.partialType,
                          isUnsigned ? APInt::getMinValue(width)
                                     : APInt::getSignedMinValue(width));
}

Value WindowKernel::maximum(KernelBuilder &b, Value x, Value y) {
  if (isa<FloatType>(plan.partialType))
    return b.create<arith::MaximumFOp>(x, y);
  if (plan.elementType.isUnsignedInteger())
    return b.create<arith::MaxUIOp>(x, y);
  return b.create<arith::MaxSIOp>(x, y);
}

/// `weight` is a scalar or a vector, as it is in memory.
Value WindowKernel::join(KernelBuilder &b, Value partial, Value input,
                         function_ref<Value()> weight) {
  bool isUnsigned = getElementTypeOrSelf(plan.x).isUnsignedInteger();
  input = b.widen(input, plan.partialType, isUnsigned);
  if (auto conv = dyn_cast<ConvOp>(plan.op)) {
    Type type = getElementTypeOrSelf(conv.getFilter());
    Value factor =
        b.widen(weight(), plan.partialType, type.isUnsignedInteger());
    if (!isa<VectorType>(factor.getType()))
      factor = b.create<vector::BroadcastOp>(partial.getType(), factor);
    return b.multiplyAdd(input, factor, partial);
  }
  if (isMaximum(plan.op))
    return maximum(b, partial, input);
  if (isa<FloatType>(plan.partialType))
    return b.create<arith::AddFOp>(partial, input);
  return b.create<arith::AddIOp>(partial, input);
}

/// The place of a weight among those of its filter, if it is packed.
Value WindowKernel::weightNumber(KernelBuilder &b, ValueRange tap,
                                 int64_t groupChannel) {
  Value number = b.index(0);
  for (auto [t, extent] : llvm::zip_equal(tap, plan.window))
    number = b.add(b.mul(number, b.index(extent)), t);
  return b.add(b.mul(number, b.index(plan.groupInputs)), b.index(groupChannel));
}

Value WindowKernel::loadWeight(KernelBuilder &b, Value channel, ValueRange tap,
                               int64_t groupChannel) {
  auto conv = cast<ConvOp>(plan.op);
  SmallVector<Value> at(tap);
  if (conv.getPackedFilter()) {
    at = {weightNumber(b, tap, groupChannel), channel};
  } else {
    at.insert(at.begin(), channel);
    at.insert(conv.getChannelsLast() ? at.end() : at.begin() + 1,
              b.index(groupChannel));
  }
  return frame.elements.element(b, frame.loc, conv.getFilter(), at);
}

/// Neighbours in a packed filter are adjacent; those of another are not.
Value WindowKernel::loadWeights(KernelBuilder &b, Value firstChannel,
                                ValueRange tap, int64_t groupChannel,
                                int64_t lanes, Value mask) {
  auto conv = cast<ConvOp>(plan.op);
  Value filter = conv.getFilter();
  if (conv.getPackedFilter() && isa<BlockArgument>(filter)) {
    cpu::Memory memory = getMemory(frame, filter);
    Value filters = b.index(int64_t(conv.getFilters()));
    Value number = weightNumber(b, tap, groupChannel);
    Value at = b.add(b.mul(number, filters), firstChannel);
    if (!mask)
      return b.loadVector(memory, at, lanes);
    Value none = b.zero(VectorType::get(lanes, memory.element));
    return b.loadMasked(memory, at, mask, none);
  }
  Value last = b.index(int64_t(conv.getFilters()) - 1), weights;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value channel = b.min(b.add(firstChannel, b.index(lane)), last);
    Value weight = loadWeight(b, channel, tap, groupChannel);
    if (!weights)
      weights = b.zero(VectorType::get(lanes, weight.getType()));
    weights = b.create<vector::InsertOp>(weight, weights, lane);
  }
  return weights;
}

Value WindowKernel::combine(KernelBuilder &b, Value partial, Value input,
                            Value channel, ValueRange tap) {
  return join(b, partial, input,
              [&] { return loadWeight(b, channel, tap, 0); });
}

Value WindowKernel::combineChannels(KernelBuilder &b, Value partial,
                                    Value input, Value firstChannel,
                                    ValueRange tap, int64_t groupChannel,
                                    Value mask) {
  int64_t lanes = cast<VectorType>(partial.getType()).getNumElements();
  return join(b, partial, input, [&] {
    return loadWeights(b, firstChannel, tap, groupChannel, lanes, mask);
  });
}

/// The taps of the window at `position` that count for its average.
Value WindowKernel::countElements(KernelBuilder &b, PoolOp op,
                                  ValueRange position) {
  Value count = b.index(1), zero = b.index(0);
  for (auto [i, p] : llvm::enumerate(position)) {
    Value begin =
        b.sub(b.mul(p, b.index(plan.strides[i])), b.index(plan.padLow[i]));
    Value low = zero,
          high = size(b, getExtent(plan.x, plan.firstSpatialAxis + i));
    if (op.getCountPadding()) {
      low = b.index(-op.getCountLow()[i]);
      high = b.add(high, b.index(op.getCountHigh()[i]));
    }
    int64_t dilation = plan.dilations[i];
    Value from = b.ceilDiv(b.max(b.sub(low, begin), zero), dilation);
    Value to = b.ceilDiv(b.max(b.sub(high, begin), zero), dilation);
    to = b.min(to, b.index(plan.window[i]));
    count = b.mul(count, b.max(b.sub(to, from), zero));
  }
  return count;
}

void WindowKernel::emitEpilogue(KernelBuilder &b, Value partial, Value image,
                                Value channel, ValueRange position) {
  auto pool = dyn_cast<PoolOp>(plan.op);
  if (pool && pool.getKind() == PoolKind::average) {
    Value count = countElements(b, pool, position);
    Value i32 = b.create<arith::IndexCastOp>(b.getI32Type(), count);
    Value divisor = b.create<arith::SIToFPOp>(plan.partialType, i32);
    partial = b.create<arith::DivFOp>(partial, divisor);
  }
  emitResults(b, frame, partial, plan.getIndices(image, channel, position));
}

void WindowKernel::emit() {
  cpu::Window window{size(b, getExtent(plan.result, 0)),
                     size(b, getExtent(plan.result, plan.channelAxis)),
                     {}};
  for (size_t i = 0; i < plan.window.size(); ++i) {
    int64_t axis = plan.firstSpatialAxis + i;
    window.dimensions.push_back({size(b, getExtent(plan.x, axis)),
                                 size(b, getExtent(plan.result, axis)),
                                 b.index(plan.window[i]), plan.strides[i],
                                 plan.dilations[i], b.index(plan.padLow[i])});
  }
  window.input = makeInput();
  window.initial = initialValue();
  window.combine = [this](KernelBuilder &b, Value partial, Value input,
                          Value channel, ValueRange tap) {
    return combine(b, partial, input, channel, tap);
  };
  window.combineChannels = [this](KernelBuilder &b, Value partial, Value input,
                                  Value firstChannel, ValueRange tap,
                                  int64_t groupChannel, Value mask) {
    return combineChannels(b, partial, input, firstChannel, tap, groupChannel,
                           mask);
  };
  window.epilogue = [this](KernelBuilder &b, Value partial, Value image,
                           Value channel, ValueRange position) {
    emitEpilogue(b, partial, image, channel, position);
  };
  window.unit = {frame.options.vectorBytes};
  window.unitsPerTask = plan.unitsPerTask;
  window.groupSize = plan.groupSize;
  window.groupInputs = plan.groupInputs;
  auto emit = plan.channelsLast ? cpu::emitPixelWindow : cpu::emitWindow;
  emit(b, window, frame.firstTask, frame.lastTask);
}

FailureOr<TaskPlan> planWindowKernel(FusedOp region, ArrayRef<SymbolAttr>) {
  Operation *op = getAnchor(region);
  if (!isa_and_nonnull<ConvOp, PoolOp>(op))
    return region.emitOpError("has no window");
  WindowPlan plan(region);
  return TaskPlan{plan.getUnits().ceilDiv(plan.unitsPerTask), 0};
}

LogicalResult emitWindowKernel(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  WindowKernel(builder, frame).emit();
  return success();
}

} // namespace tcc::codegen
