//===- Find.cpp - Positions of true elements ------------------------------===//
//
// The threads of one block take neighbours, count the true ones before theirs,
// and go on to the end.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/Irregular.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

static constexpr int64_t kFindThreads = 512;
static constexpr int64_t kFindWarps = kFindThreads / kWarp;

namespace {

class FindEmitter {
public:
  FindEmitter(KernelBuilder &b, DeviceFrame &frame, FindOp op)
      : b(b), frame(frame), op(op),
        totals(frame.allocateShared(b, b.getI64Type(), 2 * kFindWarps)) {}
  void emit();

private:
  KernelBuilder &b;
  DeviceFrame &frame;
  FindOp op;
  Buffer totals; // true elements of the warps, for two tiles

  /// True elements before a thread's, and of all of a group.
  struct Counts {
    Value before, total;
  };
  Counts countInWarp(Value one);
  Counts countInBlock(Counts warp, Value half);
  void store(Value position, Value place) {
    Value wide = b.create<arith::IndexCastOp>(b.getI64Type(), position);
    frame.results[0].store(b, frame.loc, wide, place);
  }
};

} // namespace

/// Groups of one, two, four, ... threads: the upper half of a group comes after
/// all of the lower one.
FindEmitter::Counts FindEmitter::countInWarp(Value one) {
  Counts counts{b.index(0), one};
  for (int64_t mask = 1; mask < kWarp; mask *= 2) {
    Value other = emitShuffle(b, counts.total, mask);
    Value half = b.rem(b.div(frame.thread, b.index(mask)), b.index(2));
    counts.before = b.add(counts.before, b.mul(half, other));
    counts.total = b.add(counts.total, other);
  }
  return counts;
}

/// The warps' totals alternate between halves of `totals`: one is read by
/// slower warps while faster ones already fill the other.
FindEmitter::Counts FindEmitter::countInBlock(Counts warp, Value half) {
  Value lane = b.rem(frame.thread, b.index(kWarp));
  Value number = b.div(frame.thread, b.index(kWarp));
  Value first = b.mul(half, b.index(kFindWarps));
  b.when(b.equal(lane, b.index(0)), [&] {
    Value wide = b.create<arith::IndexCastOp>(b.getI64Type(), warp.total);
    totals.store(b, frame.loc, wide, b.add(first, number));
  });
  emitBarrier(b);
  Counts counts{warp.before, b.index(0)};
  for (int64_t i = 0; i < kFindWarps; ++i) {
    Value wide = totals.load(b, frame.loc, b.add(first, b.index(i)));
    Value total = b.create<arith::IndexCastOp>(b.getIndexType(), wide);
    Value isBefore = b.less(b.index(i), number);
    counts.before = b.add(
        counts.before, b.create<arith::SelectOp>(isBefore, total, b.index(0)));
    counts.total = b.add(counts.total, total);
  }
  return counts;
}

void FindEmitter::emit() {
  Value extent = frame.size(b, getExtent(op.getX(), 0));
  Value count = frame.size(b, getExtent(op.getPositions(), 0));
  Value zero = b.index(0), threads = b.index(kFindThreads);
  auto emitTile = [&](Value tile, ValueRange carried) {
    Value found = carried[0], half = carried[1];
    Value position = b.add(tile, frame.thread);
    Value isTrue = b.choose(
        b.less(position, extent), b.getI1Type(),
        [&] {
          return frame.elements.element(b, frame.loc, op.getX(), position);
        },
        [&] { return b.zero(b.getI1Type()); });
    Value one = b.create<arith::IndexCastUIOp>(b.getIndexType(), isTrue);
    Counts counts = countInBlock(countInWarp(one), half);
    Value place = b.add(found, counts.before);
    b.when(b.create<arith::AndIOp>(isTrue, b.less(place, count)),
           [&] { store(position, place); });
    return SmallVector<Value>{b.add(found, counts.total),
                              b.sub(b.index(1), half)};
  };
  Value found = b.loop(zero, extent, threads, {zero, zero}, emitTile)[0];
  b.loop(b.add(found, frame.thread), count, threads,
         [&](Value place) { store(zero, place); });
}

LaunchPlan planFind(FindOp op) {
  return {getAffineConstantExpr(1, op.getContext()), kFindThreads};
}

void emitFind(KernelBuilder &b, DeviceFrame &frame, FindOp op) {
  FindEmitter(b, frame, op).emit();
}

} // namespace tcc::cuda
