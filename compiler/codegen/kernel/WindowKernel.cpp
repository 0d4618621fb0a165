//===- WindowKernel.cpp - Pooling and depthwise convolution ---------------===//

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
  /// Output channels for each channel of x.
  int64_t multiplier = 1;
  int64_t planesPerTask;

  explicit WindowPlan(FusedOp region);
  AffineExpr getPlanes() const {
    return getExtent(result, 0) * getExtent(result, 1);
  }

private:
  template <typename Op> void takeWindow(Op op) {
    x = op.getX();
    window = op.getWindow();
    strides = op.getStrides();
    dilations = op.getDilations();
    padLow = op.getPadLow();
  }
};

} // namespace

WindowPlan::WindowPlan(FusedOp region) : op(getAnchor(region)) {
  result = op->getResult(0);
  elementType = getElementTypeOrSelf(result);
  if (auto conv = dyn_cast<ConvOp>(op)) {
    takeWindow(conv);
    multiplier = conv.getFilters() / conv.getGroups();
    partialType = getSumType(elementType);
  } else {
    auto pool = cast<PoolOp>(op);
    takeWindow(pool);
    partialType = getSumType(elementType);
    if (auto integer = dyn_cast<IntegerType>(elementType))
      if (pool.getKind() == PoolKind::max)
        partialType = IntegerType::get(op->getContext(), integer.getWidth());
  }
  int64_t work = 1;
  for (size_t i = 0; i < window.size(); ++i)
    work *= window[i] * getConstant(getExtent(result, 2 + i)).value_or(64);
  planesPerTask = cpu::chooseWindowGrain(work);
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
  Value multiplyAdd(KernelBuilder &b, ConvOp op, Value partial, Value input,
                    Value channel, ValueRange tap);
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
  input.offset = b.index(0);
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
    SmallVector<Value> at = {image, channel};
    llvm::append_range(at, position);
    return frame.elements.element(b, frame.loc, plan.x, at);
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

Value WindowKernel::multiplyAdd(KernelBuilder &b, ConvOp op, Value partial,
                                Value input, Value channel, ValueRange tap) {
  SmallVector<Value> at = {channel, b.index(0)};
  llvm::append_range(at, tap);
  Value filter = op.getFilter();
  Value weight = frame.elements.element(b, frame.loc, filter, at);
  Type type = getElementTypeOrSelf(filter);
  weight = b.widen(weight, plan.partialType, type.isUnsignedInteger());
  Value all = b.create<vector::BroadcastOp>(partial.getType(), weight);
  return b.multiplyAdd(input, all, partial);
}

Value WindowKernel::combine(KernelBuilder &b, Value partial, Value input,
                            Value channel, ValueRange tap) {
  bool isUnsigned = getElementTypeOrSelf(plan.x).isUnsignedInteger();
  input = b.widen(input, plan.partialType, isUnsigned);
  if (auto conv = dyn_cast<ConvOp>(plan.op))
    return multiplyAdd(b, conv, partial, input, channel, tap);
  if (isMaximum(plan.op))
    return maximum(b, partial, input);
  if (isa<FloatType>(plan.partialType))
    return b.create<arith::AddFOp>(partial, input);
  return b.create<arith::AddIOp>(partial, input);
}

/// The taps of the window at `position` that count for its average.
Value WindowKernel::countElements(KernelBuilder &b, PoolOp op,
                                  ValueRange position) {
  Value count = b.index(1), zero = b.index(0);
  for (auto [i, p] : llvm::enumerate(position)) {
    Value begin =
        b.sub(b.mul(p, b.index(plan.strides[i])), b.index(plan.padLow[i]));
    Value low = zero, high = size(b, getExtent(plan.x, 2 + i));
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
  SmallVector<Value> at = {image, channel};
  llvm::append_range(at, position);
  auto pool = dyn_cast<PoolOp>(plan.op);
  if (pool && pool.getKind() == PoolKind::average) {
    Value count = countElements(b, pool, position);
    Value i32 = b.create<arith::IndexCastOp>(b.getI32Type(), count);
    Value divisor = b.create<arith::SIToFPOp>(plan.partialType, i32);
    partial = b.create<arith::DivFOp>(partial, divisor);
  }
  emitResults(b, frame, partial, at);
}

void WindowKernel::emit() {
  cpu::Window window{size(b, getExtent(plan.result, 0)),
                     size(b, getExtent(plan.result, 1)),
                     {}};
  for (size_t i = 0; i < plan.window.size(); ++i)
    window.dimensions.push_back({size(b, getExtent(plan.x, 2 + i)),
                                 size(b, getExtent(plan.result, 2 + i)),
                                 b.index(plan.window[i]), plan.strides[i],
                                 plan.dilations[i], b.index(plan.padLow[i])});
  window.input = makeInput();
  window.initial = initialValue();
  window.combine = [this](KernelBuilder &b, Value partial, Value input,
                          Value channel, ValueRange tap) {
    return combine(b, partial, input, channel, tap);
  };
  window.epilogue = [this](KernelBuilder &b, Value partial, Value image,
                           Value channel, ValueRange position) {
    emitEpilogue(b, partial, image, channel, position);
  };
  window.unit = {frame.options.vectorBytes};
  window.planesPerTask = plan.planesPerTask;
  window.multiplier = plan.multiplier;
  cpu::emitWindow(b, window, frame.firstTask, frame.lastTask);
}

FailureOr<TaskPlan> planWindowKernel(FusedOp region, ArrayRef<SymbolAttr>) {
  Operation *op = getAnchor(region);
  if (!isa_and_nonnull<ConvOp, PoolOp>(op))
    return region.emitOpError("has no window");
  WindowPlan plan(region);
  return TaskPlan{plan.getPlanes().ceilDiv(plan.planesPerTask), 0};
}

LogicalResult emitWindowKernel(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  WindowKernel(builder, frame).emit();
  return success();
}

} // namespace tcc::codegen
