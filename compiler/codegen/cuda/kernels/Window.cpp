//===- Window.cpp - A thread slides its window over some neighbours -------===//
//
// A thread computes a vector of the result: neighbours along the channels or,
// where these do not come last, along the last spatial axis.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"
#include "compiler/codegen/region/Sums.h"
#include "compiler/codegen/region/WindowPlan.h"

using namespace mlir;
using namespace tcc::graph;
using tcc::codegen::WindowPlan;

namespace tcc::cuda {

/// Fewer than elsewhere: a thread has more to do.
static constexpr int64_t kThreads = 128;

namespace {

/// The vectors of the result.
struct VectorSpace {
  int64_t lanes;
  Extents extents; // in vectors

  VectorSpace(FusedOp region, Value result) : extents(getExtents(result)) {
    lanes = chooseVector(getElementTypes(region), extents.back());
    extents.back() = extents.back().ceilDiv(lanes);
  }
  AffineExpr getCount() const {
    return getNumElements(extents, extents.back().getContext());
  }
};

class WindowEmitter {
public:
  WindowEmitter(KernelBuilder &b, DeviceFrame &frame)
      : b(b), frame(frame), plan(codegen::getAnchor(frame.region)),
        space(frame.region, plan.result) {}
  void emit();

private:
  using Values = SmallVector<Value>;

  KernelBuilder &b;
  DeviceFrame &frame;
  WindowPlan plan;
  VectorSpace space;
  Values first; // indices of this thread's first element

  Values getLane(int64_t lane);
  Values getPosition(ValueRange at) {
    return Values(at.slice(plan.firstSpatialAxis, plan.window.size()));
  }
  Values walk(Values tap, Values partials);
  Value joinTap(ValueRange at, ValueRange tap, Value partial);
  void store(ValueRange partials);
};

} // namespace

SmallVector<Value> WindowEmitter::getLane(int64_t lane) {
  Values at = first;
  at.back() = b.add(at.back(), b.index(lane));
  return at;
}

/// Adds what lies under one tap of the window of the element at `at`. Nothing
/// is read outside of x.
Value WindowEmitter::joinTap(ValueRange at, ValueRange tap, Value partial) {
  Values position = getPosition(at);
  Value zero = b.index(0), isInside = b.create<arith::ConstantIntOp>(1, 1);
  for (auto [i, p] : llvm::enumerate(position)) {
    Value begin =
        b.sub(b.mul(p, b.index(plan.strides[i])), b.index(plan.padLow[i]));
    p = b.add(begin, b.mul(tap[i], b.index(plan.dilations[i])));
    Value dilation = b.index(plan.inputDilations[i]);
    Value extent = frame.size(b, getExtent(plan.x, plan.firstSpatialAxis + i));
    Value isValid = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, p,
                                            b.mul(extent, dilation));
    p = b.create<arith::SelectOp>(isValid, p, zero);
    if (plan.inputDilations[i] > 1)
      isValid =
          b.create<arith::AndIOp>(isValid, b.equal(b.rem(p, dilation), zero));
    p = b.div(p, dilation);
    isInside = b.create<arith::AndIOp>(isInside, isValid);
  }
  Value channel = at[plan.channelAxis];
  Value input =
      b.mul(b.div(channel, b.index(plan.groupSize)), b.index(plan.groupInputs));
  auto join = [&] {
    Value joined = partial;
    for (int64_t i = 0; i < plan.groupInputs; ++i) {
      Values from = plan.getIndices(at[0], b.add(input, b.index(i)), position);
      Value x = frame.elements.element(b, frame.loc, plan.x, from);
      joined = plan.join(b, joined, x, [&] {
        return plan.loadWeight(b, frame, channel, tap, i);
      });
    }
    return joined;
  };
  Value joined = readUnlessEmpty(b, frame, plan.x, join, partial);
  return b.create<arith::SelectOp>(isInside, joined, partial);
}

SmallVector<Value> WindowEmitter::walk(Values tap, Values partials) {
  if (tap.size() == plan.window.size()) {
    for (auto [lane, partial] : llvm::enumerate(partials))
      partial = joinTap(getLane(lane), tap, partial);
    return partials;
  }
  Value end = b.index(plan.window[tap.size()]);
  return b.loop(b.index(0), end, partials, [&](Value t, ValueRange carried) {
    Values inner = tap;
    inner.push_back(t);
    return walk(inner, llvm::to_vector(carried));
  });
}

void WindowEmitter::store(ValueRange partials) {
  for (auto [lane, partial] : llvm::enumerate(partials)) {
    Values at = getLane(lane);
    Value element = plan.finish(b, frame, partial, getPosition(at));
    codegen::defineSum(b, frame, element, at);
  }
  storeResults(b, frame,
               llvm::to_vector(llvm::seq<unsigned>(frame.results.size())),
               space.lanes, [&](int64_t lane) { return getLane(lane); });
}

void WindowEmitter::emit() {
  Value place = b.add(b.mul(frame.block, b.index(kThreads)), frame.thread);
  b.when(b.less(place, frame.size(b, space.getCount())), [&] {
    first = b.delinearize(place, frame.sizes(b, space.extents));
    first.back() = b.mul(first.back(), b.index(space.lanes));
    Value initial = b.create<arith::ConstantOp>(plan.getInitial());
    store(walk({}, Values(space.lanes, initial)));
  });
}

FailureOr<LaunchPlan> planWindow(FusedOp region, ArrayRef<SymbolAttr>) {
  FailureOr<WindowPlan> plan = WindowPlan::create(region);
  if (failed(plan))
    return failure();
  VectorSpace space(region, plan->result);
  return LaunchPlan{space.getCount().ceilDiv(kThreads), kThreads};
}

LogicalResult emitWindow(KernelBuilder &b, DeviceFrame &frame) {
  WindowEmitter(b, frame).emit();
  return success();
}

} // namespace tcc::cuda
