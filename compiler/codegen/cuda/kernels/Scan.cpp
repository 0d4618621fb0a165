//===- Scan.cpp - Running sums and products -------------------------------===//
//
// Where rows lie side by side, a thread walks one, as the host does. Else the
// threads of a warp, or of a block if rows are long, take neighbours of a row
// and combine what those before them have; so they go on to the end of the row.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"
#include "compiler/codegen/region/ScanPlan.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

namespace {

constexpr int64_t kThreads = 256;
constexpr int64_t kWarps = kThreads / kWarp;

struct DeviceScan : codegen::ScanPlan {
  int64_t rowThreads = 1; // of a row

  DeviceScan(FusedOp region, ArrayRef<SymbolAttr> symbols);
  int64_t getRowsPerBlock() const { return kThreads / rowThreads; }
};

class ScanEmitter {
public:
  ScanEmitter(KernelBuilder &b, DeviceFrame &frame)
      : b(b), frame(frame), plan(frame.region, frame.symbols) {}
  void emit();

private:
  KernelBuilder &b;
  DeviceFrame &frame;
  DeviceScan plan;
  Buffer totals; // of a block's warps, for two tiles

  /// What is combined before an element, and with all elements of a group.
  struct Sums {
    Value before, total;
  };
  Value combine(Value lhs, Value rhs) {
    return plan.emitCombine(b, frame.loc, lhs, rhs);
  }
  Value load(ValueRange at) {
    return frame.elements.element(b, frame.loc, plan.op.getX(), at);
  }
  void walk(ValueRange row);
  void walkTogether(ValueRange row);
  Sums scanWarp(Value x);
  Sums scanBlock(Sums warp, Value half);
  void store(ValueRange at, Value before, Value x);
};

} // namespace

DeviceScan::DeviceScan(FusedOp region, ArrayRef<SymbolAttr> symbols)
    : ScanPlan(region) {
  auto inner = ArrayRef(rows).drop_front(op.getAxis());
  if (codegen::getMaxCount(inner, symbols) >= kWarp)
    return;
  constexpr int64_t kLong = 1024;
  bool isLong = codegen::getMaxCount(extent, symbols) > kLong;
  rowThreads = isLong ? kThreads : kWarp;
}

void ScanEmitter::store(ValueRange at, Value before, Value x) {
  Value element = plan.op.getExclusive() ? before : combine(before, x);
  Value result = plan.op.getResult();
  element =
      frame.elements.round(b, frame.loc, element, getElementTypeOrSelf(result));
  frame.elements.define(result, at, element);
  storeResults(b, frame,
               llvm::to_vector(llvm::seq<unsigned>(frame.results.size())), 1,
               [&](int64_t) { return llvm::to_vector(at); });
}

/// One thread alone.
void ScanEmitter::walk(ValueRange row) {
  Value extent = frame.size(b, plan.extent);
  Value neutral = plan.emitNeutral(b, frame.loc);
  b.loop(b.index(0), extent, neutral, [&](Value step, ValueRange before) {
    SmallVector<Value> at = plan.getIndices(b, row, step, extent);
    Value x = load(at);
    store(at, before[0], x);
    return SmallVector<Value>{combine(before[0], x)};
  });
}

/// Groups of one, two, four, ... threads: the upper half of a group comes after
/// all of the lower one.
ScanEmitter::Sums ScanEmitter::scanWarp(Value x) {
  Sums sums{plan.emitNeutral(b, frame.loc), x};
  for (int64_t mask = 1; mask < kWarp; mask *= 2) {
    Value other = emitShuffle(b, sums.total, mask);
    Value half = b.rem(b.div(frame.thread, b.index(mask)), b.index(2));
    Value isUpper = b.equal(half, b.index(1));
    sums.before = b.create<arith::SelectOp>(
        isUpper, combine(other, sums.before), sums.before);
    sums.total = combine(sums.total, other);
  }
  return sums;
}

/// The warps' totals alternate between halves of `totals`: one is read by
/// slower warps while faster ones already fill the other.
ScanEmitter::Sums ScanEmitter::scanBlock(Sums warp, Value half) {
  Value lane = b.rem(frame.thread, b.index(kWarp));
  Value number = b.div(frame.thread, b.index(kWarp));
  Value first = b.mul(half, b.index(kWarps));
  b.when(b.equal(lane, b.index(0)),
         [&] { totals.store(b, frame.loc, warp.total, b.add(first, number)); });
  emitBarrier(b);
  Value neutral = plan.emitNeutral(b, frame.loc);
  Sums sums{neutral, neutral};
  for (int64_t i = 0; i < kWarps; ++i) {
    sums.before = b.create<arith::SelectOp>(b.equal(number, b.index(i)),
                                            sums.total, sums.before);
    Value total = totals.load(b, frame.loc, b.add(first, b.index(i)));
    sums.total = combine(sums.total, total);
  }
  sums.before = combine(sums.before, warp.before);
  return sums;
}

/// All threads of the row come here.
void ScanEmitter::walkTogether(ValueRange row) {
  Value extent = frame.size(b, plan.extent);
  Value neutral = plan.emitNeutral(b, frame.loc);
  Type type = neutral.getType();
  Value zero = b.index(0), one = b.index(1);
  Value threads = b.index(plan.rowThreads);
  Value thread = b.rem(frame.thread, threads);
  auto emitTile = [&](Value tile, ValueRange carried) {
    Value before = carried[0], half = carried[1];
    Value step = b.add(tile, thread), isInside = b.less(step, extent);
    SmallVector<Value> at = plan.getIndices(b, row, step, extent);
    // No other thread's element: that one may write its result over it.
    Value x = b.choose(
        isInside, type, [&] { return load(at); }, [&] { return neutral; });
    Sums sums = scanWarp(x);
    if (plan.rowThreads > kWarp)
      sums = scanBlock(sums, half);
    b.when(isInside, [&] { store(at, combine(before, sums.before), x); });
    return SmallVector<Value>{combine(before, sums.total), b.sub(one, half)};
  };
  b.loop(zero, extent, threads, ValueRange{neutral, zero}, emitTile);
}

void ScanEmitter::emit() {
  Value thread = b.div(frame.thread, b.index(plan.rowThreads));
  Value place =
      b.add(b.mul(frame.block, b.index(plan.getRowsPerBlock())), thread);
  if (plan.rowThreads > kWarp)
    totals = frame.allocateShared(
        b, getScalarType(getElementTypeOrSelf(plan.op.getResult())),
        2 * kWarps);
  b.when(b.less(place, frame.size(b, plan.getRowCount())), [&] {
    SmallVector<Value> row = b.delinearize(place, frame.sizes(b, plan.rows));
    if (plan.rowThreads == 1)
      walk(row);
    else
      walkTogether(row);
  });
}

FailureOr<LaunchPlan> planScan(FusedOp region, ArrayRef<SymbolAttr> symbols) {
  DeviceScan plan(region, symbols);
  return LaunchPlan{plan.getRowCount().ceilDiv(plan.getRowsPerBlock()),
                    kThreads};
}

LogicalResult emitScan(KernelBuilder &b, DeviceFrame &frame) {
  ScanEmitter(b, frame).emit();
  return success();
}

} // namespace tcc::cuda
