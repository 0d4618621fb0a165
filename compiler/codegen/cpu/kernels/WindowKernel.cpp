//===- WindowKernel.cpp - Pooling, convolution of narrow groups -----------===//

#include "compiler/codegen/cpu/kernels/MatrixKernel.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "compiler/codegen/cpu/tile/Window.h"
#include "compiler/codegen/region/WindowPlan.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

/// Planes, or rows of pixels where channels come last, of a task.
static int64_t getUnitsPerTask(const WindowPlan &plan) {
  int64_t work = plan.groupInputs;
  for (int64_t extent : plan.window)
    work *= extent;
  int64_t rank = getExtents(plan.result).size();
  for (int64_t axis = plan.channelsLast ? rank - 2 : 2; axis < rank; ++axis)
    work *= getConstant(getExtent(plan.result, axis)).value_or(64);
  return chooseWindowGrain(work);
}

/// Whether what lies in memory as `filter` has neighbouring weights adjacent.
static bool isPacked(ConvOp conv) {
  return conv.getPackedFilter() && isa<BlockArgument>(conv.getFilter());
}

/// The packing of a group's input channels: they are joined in units where
/// these can be loaded, and made of weights, too.
static Packing choosePacking(const WindowPlan &plan) {
  auto conv = dyn_cast<ConvOp>(plan.op);
  if (!conv || !plan.channelsLast || !isPacked(conv) ||
      !isa<BlockArgument>(plan.x) || !plan.partialType.isF32())
    return {};
  Type type = getElementTypeOrSelf(plan.x);
  Packing packing = graph::getPacking(type);
  bool isTaken = type == getElementTypeOrSelf(conv.getFilter()) &&
                 plan.groupInputs % packing.group == 0;
  return isTaken ? packing : Packing();
}

namespace {

class WindowKernel {
public:
  WindowKernel(KernelBuilder &b, KernelFrame &frame)
      : b(b), frame(frame), plan(getAnchor(frame.region)),
        packing(choosePacking(plan)) {}
  void emit();

private:
  KernelBuilder &b;
  KernelFrame &frame;
  WindowPlan plan;
  Packing packing;

  Value size(OpBuilder &b, AffineExpr expression) {
    return frame.elements.size(b, frame.loc, expression);
  }
  WindowInput makeInput();
  Value combine(KernelBuilder &b, Value partial, Value input, Value channel,
                ValueRange tap);
  Value combineChannels(KernelBuilder &b, Value partial, Value input,
                        Value firstChannel, ValueRange tap,
                        int64_t groupChannel, Value mask);
  Value loadWeights(KernelBuilder &b, Value firstChannel, ValueRange tap,
                    int64_t groupChannel, int64_t lanes, Value mask);
  void emitEpilogue(KernelBuilder &b, Value partial, Value image, Value channel,
                    ValueRange position);
};

} // namespace

WindowInput WindowKernel::makeInput() {
  WindowInput input;
  if (isa<BlockArgument>(plan.x)) {
    input.base = getMemory(frame, plan.x);
    if (packing.group > 1)
      input.base = input.base.asBits();
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

/// Neighbours in a packed filter are adjacent; those of another are not.
Value WindowKernel::loadWeights(KernelBuilder &b, Value firstChannel,
                                ValueRange tap, int64_t groupChannel,
                                int64_t lanes, Value mask) {
  auto conv = cast<ConvOp>(plan.op);
  Value filter = conv.getFilter();
  if (isPacked(conv)) {
    Memory memory = getMemory(frame, filter);
    if (packing.group > 1)
      memory = memory.asBits();
    Value filters = b.index(int64_t(conv.getFilters()));
    Value number = plan.getWeightNumber(b, tap, groupChannel);
    Value at = b.add(b.mul(number, filters), firstChannel);
    if (!mask)
      return b.loadVector(memory, at, lanes);
    Value none = b.zero(VectorType::get(lanes, memory.element));
    return b.loadMasked(memory, at, mask, none);
  }
  Value last = b.index(int64_t(conv.getFilters()) - 1), weights;
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value channel = b.min(b.add(firstChannel, b.index(lane)), last);
    Value weight = plan.loadWeight(b, frame, channel, tap, groupChannel);
    if (!weights)
      weights = b.zero(VectorType::get(lanes, weight.getType()));
    weights = b.create<vector::InsertOp>(weight, weights, lane);
  }
  return weights;
}

Value WindowKernel::combine(KernelBuilder &b, Value partial, Value input,
                            Value channel, ValueRange tap) {
  return plan.join(b, partial, input,
                   [&] { return plan.loadWeight(b, frame, channel, tap, 0); });
}

Value WindowKernel::combineChannels(KernelBuilder &b, Value partial,
                                    Value input, Value firstChannel,
                                    ValueRange tap, int64_t groupChannel,
                                    Value mask) {
  int64_t lanes = cast<VectorType>(partial.getType()).getNumElements();
  if (int64_t group = packing.group; group > 1) {
    SmallVector<Value> rows;
    for (int64_t i = 0; i < group; ++i)
      rows.push_back(loadWeights(b, firstChannel, tap, groupChannel * group + i,
                                 lanes, mask));
    return multiplyUnits(b, input, interleave(b, rows), partial,
                         getVectorUnit(frame.options));
  }
  return plan.join(b, partial, input, [&] {
    return loadWeights(b, firstChannel, tap, groupChannel, lanes, mask);
  });
}

void WindowKernel::emitEpilogue(KernelBuilder &b, Value partial, Value image,
                                Value channel, ValueRange position) {
  partial = plan.finish(b, frame, partial, position);
  emitResults(b, frame, partial, plan.getIndices(image, channel, position));
}

void WindowKernel::emit() {
  Window window{size(b, getExtent(plan.result, 0)),
                size(b, getExtent(plan.result, plan.channelAxis)),
                {}};
  for (size_t i = 0; i < plan.window.size(); ++i) {
    int64_t axis = plan.firstSpatialAxis + i;
    window.dimensions.push_back({size(b, getExtent(plan.x, axis)),
                                 size(b, getExtent(plan.result, axis)),
                                 b.index(plan.window[i]), plan.strides[i],
                                 plan.dilations[i], b.index(plan.padLow[i]),
                                 plan.inputDilations[i]});
  }
  window.input = makeInput();
  window.initial = plan.getInitial();
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
  window.unit = getVectorUnit(frame.options);
  window.unitsPerTask = getUnitsPerTask(plan);
  window.groupSize = plan.groupSize;
  window.groupInputs = plan.groupInputs;
  window.packing = packing;
  auto emit = plan.channelsLast ? emitPixelWindow : emitWindow;
  emit(b, window, frame.firstTask, frame.lastTask);
}

FailureOr<TaskPlan> planWindowKernel(FusedOp region, ArrayRef<SymbolAttr>) {
  FailureOr<WindowPlan> plan = WindowPlan::create(region);
  if (failed(plan))
    return failure();
  int64_t outerAxes = plan->channelsLast ? plan->window.size() : 2;
  AffineExpr units =
      getNumElements(ArrayRef(getExtents(plan->result)).take_front(outerAxes),
                     region.getContext());
  return TaskPlan{units.ceilDiv(getUnitsPerTask(*plan)), 0};
}

LogicalResult emitWindowKernel(OpBuilder &b, KernelFrame &frame) {
  KernelBuilder builder = makeKernelBuilder(b, frame.loc);
  WindowKernel(builder, frame).emit();
  return success();
}

} // namespace tcc::cpu
