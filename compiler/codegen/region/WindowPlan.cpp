#include "compiler/codegen/region/WindowPlan.h"
#include "compiler/codegen/region/Sums.h"

#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

static bool isMaximum(Operation *op) {
  auto pool = dyn_cast<PoolOp>(op);
  return pool && pool.getKind() == PoolKind::max;
}

FailureOr<WindowPlan> WindowPlan::create(FusedOp region) {
  Operation *op = getAnchor(region);
  if (!isa_and_nonnull<ConvOp, PoolOp>(op))
    return region.emitOpError("has no window");
  return WindowPlan(op);
}

template <typename Op> void WindowPlan::takeWindow(Op op) {
  x = op.getX();
  window = op.getWindow();
  strides = op.getStrides();
  dilations = op.getDilations();
  padLow = op.getPadLow();
  inputDilations.assign(window.size(), 1);
  channelsLast = op.getChannelsLast();
  channelAxis = op.getChannelAxis();
  firstSpatialAxis = op.getFirstSpatialAxis();
}

WindowPlan::WindowPlan(Operation *op) : op(op), result(op->getResult(0)) {
  elementType = getElementTypeOrSelf(result);
  partialType = getSumType(elementType);
  if (auto conv = dyn_cast<ConvOp>(op)) {
    takeWindow(conv);
    if (auto dilations = conv.getInputDilations())
      inputDilations = llvm::to_vector(*dilations);
    groupSize = conv.getFilters() / conv.getGroups();
    groupInputs = conv.getGroupChannels();
    return;
  }
  takeWindow(cast<PoolOp>(op));
  if (auto integer = dyn_cast<IntegerType>(elementType);
      integer && isMaximum(op))
    partialType = IntegerType::get(op->getContext(), integer.getWidth());
}

SmallVector<Value> WindowPlan::getIndices(Value image, Value channel,
                                          ValueRange position) const {
  SmallVector<Value> at(position);
  at.insert(at.begin(), image);
  at.insert(at.begin() + channelAxis, channel);
  return at;
}

// --- Combinations

TypedAttr WindowPlan::getInitial() const {
  Builder b(op->getContext());
  if (!isMaximum(op))
    return cast<TypedAttr>(b.getZeroAttr(partialType));
  if (auto type = dyn_cast<FloatType>(partialType))
    return b.getFloatAttr(
        type, APFloat::getInf(type.getFloatSemantics(), /*Negative=*/true));
  unsigned width = partialType.getIntOrFloatBitWidth();
  bool isUnsigned = elementType.isUnsignedInteger();
  return b.getIntegerAttr(partialType, isUnsigned
                                           ? APInt::getMinValue(width)
                                           : APInt::getSignedMinValue(width));
}

Value WindowPlan::emitMaximum(KernelBuilder &b, Value x, Value y) const {
  if (isa<FloatType>(partialType))
    return b.create<arith::MaximumFOp>(x, y);
  if (elementType.isUnsignedInteger())
    return b.create<arith::MaxUIOp>(x, y);
  return b.create<arith::MaxSIOp>(x, y);
}

Value WindowPlan::join(KernelBuilder &b, Value partial, Value input,
                       function_ref<Value()> weight) const {
  bool isUnsigned = getElementTypeOrSelf(x).isUnsignedInteger();
  input = b.widen(input, partialType, isUnsigned);
  if (auto conv = dyn_cast<ConvOp>(op)) {
    Type type = getElementTypeOrSelf(conv.getFilter());
    Value factor = b.widen(weight(), partialType, type.isUnsignedInteger());
    if (factor.getType() != partial.getType())
      factor = b.create<vector::BroadcastOp>(partial.getType(), factor);
    return b.multiplyAdd(input, factor, partial);
  }
  if (isMaximum(op))
    return emitMaximum(b, partial, input);
  if (isa<FloatType>(partialType))
    return b.create<arith::AddFOp>(partial, input);
  return b.create<arith::AddIOp>(partial, input);
}

/// The taps of the window at `position` that count for its average.
Value WindowPlan::countElements(KernelBuilder &b, RegionFrame &frame, PoolOp op,
                                ValueRange position) const {
  Value count = b.index(1), zero = b.index(0);
  for (auto [i, p] : llvm::enumerate(position)) {
    Value begin = b.sub(b.mul(p, b.index(strides[i])), b.index(padLow[i]));
    Value low = zero, high = frame.size(b, getExtent(x, firstSpatialAxis + i));
    if (op.getCountPadding()) {
      low = b.index(-op.getCountLow()[i]);
      high = b.add(high, b.index(op.getCountHigh()[i]));
    }
    int64_t dilation = dilations[i];
    Value from = b.ceilDiv(b.max(b.sub(low, begin), zero), dilation);
    Value to = b.ceilDiv(b.max(b.sub(high, begin), zero), dilation);
    to = b.min(to, b.index(window[i]));
    count = b.mul(count, b.max(b.sub(to, from), zero));
  }
  return count;
}

Value WindowPlan::finish(KernelBuilder &b, RegionFrame &frame, Value partial,
                         ValueRange position) const {
  auto pool = dyn_cast<PoolOp>(op);
  if (!pool || pool.getKind() != PoolKind::average)
    return partial;
  Value count = countElements(b, frame, pool, position);
  Value i32 = b.create<arith::IndexCastOp>(b.getI32Type(), count);
  Value divisor = b.create<arith::SIToFPOp>(partialType, i32);
  return b.create<arith::DivFOp>(partial, divisor);
}

// --- Weights

Value WindowPlan::getWeightNumber(KernelBuilder &b, ValueRange tap,
                                  int64_t groupChannel) const {
  Value number = b.index(0);
  for (auto [t, extent] : llvm::zip_equal(tap, window))
    number = b.add(b.mul(number, b.index(extent)), t);
  return b.add(b.mul(number, b.index(groupInputs)), b.index(groupChannel));
}

Value WindowPlan::loadWeight(KernelBuilder &b, RegionFrame &frame, Value filter,
                             ValueRange tap, int64_t groupChannel) const {
  auto conv = cast<ConvOp>(op);
  SmallVector<Value> at(tap);
  if (conv.getPackedFilter()) {
    at = {getWeightNumber(b, tap, groupChannel), filter};
  } else {
    at.insert(at.begin(), filter);
    at.insert(at.begin() + channelAxis, b.index(groupChannel));
  }
  return frame.elements.element(b, frame.loc, conv.getFilter(), at);
}

} // namespace tcc::codegen
