//===- TopK.cpp - The best elements of each row, sorted -------------------===//
//
// A block finds the elements of a row one after the other: the next one is the
// best of those that come after the last. No memory is needed, and rows may be
// of any length.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/Irregular.h"
#include "compiler/codegen/region/Updates.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

static constexpr int64_t kThreads = 256;
static constexpr int64_t kWarps = kThreads / kWarp;

static Extents getRows(TopKOp op) {
  Extents rows = getExtents(op.getX());
  rows.erase(rows.begin() + op.getAxis());
  return rows;
}

namespace {

/// An element and its index, of type index; -1: there is none.
struct Candidate {
  Value value, index;
};

class TopKEmitter {
public:
  TopKEmitter(KernelBuilder &b, DeviceFrame &frame, TopKOp op);
  void emit();

private:
  KernelBuilder &b;
  DeviceFrame &frame;
  TopKOp op;
  Type type;              // of values
  Buffer values, indices; // the warps' best, for two places
  SmallVector<Value> row;

  Value emitAnd(Value x, Value y) { return b.create<arith::AndIOp>(x, y); }
  Value emitOr(Value x, Value y) { return b.create<arith::OrIOp>(x, y); }
  Value isBefore(Candidate x, Candidate y);
  Candidate choose(Candidate x, Candidate y);
  Candidate findInThread(Candidate last);
  Candidate findInBlock(Candidate best, Value place);
  void store(Value place, Candidate found);
};

} // namespace

TopKEmitter::TopKEmitter(KernelBuilder &b, DeviceFrame &frame, TopKOp op)
    : b(b), frame(frame), op(op),
      type(getScalarType(getElementTypeOrSelf(op.getX()))),
      values(frame.allocateShared(b, type, 2 * kWarps)),
      indices(frame.allocateShared(b, b.getI64Type(), 2 * kWarps)) {}

/// The order of the results; both exist.
Value TopKEmitter::isBefore(Candidate x, Candidate y) {
  auto isBetter = [&](Value l, Value r) {
    return codegen::emitIsBetter(b, frame.loc, op, l, r);
  };
  Value isWorse = isBetter(y.value, x.value);
  Value isLevel =
      b.create<arith::XOrIOp>(isWorse, b.create<arith::ConstantIntOp>(1, 1));
  return emitOr(isBetter(x.value, y.value),
                emitAnd(isLevel, b.less(x.index, y.index)));
}

Candidate TopKEmitter::choose(Candidate x, Candidate y) {
  Value none = b.index(-1);
  Value isSecond = emitOr(b.equal(x.index, none),
                          emitAnd(b.less(none, y.index), isBefore(y, x)));
  return {b.create<arith::SelectOp>(isSecond, y.value, x.value),
          b.create<arith::SelectOp>(isSecond, y.index, x.index)};
}

/// The best of this thread's share of those after `last`.
Candidate TopKEmitter::findInThread(Candidate last) {
  Value extent = frame.size(b, getExtent(op.getX(), op.getAxis()));
  Value none = b.index(-1), isFirst = b.equal(last.index, none);
  SmallVector<Value> start = {b.zero(type), none};
  auto found = b.loop(
      frame.thread, extent, b.index(kThreads), start,
      [&](Value i, ValueRange best) {
        SmallVector<Value> at(row);
        at.insert(at.begin() + op.getAxis(), i);
        Candidate x{frame.elements.element(b, frame.loc, op.getX(), at), i};
        Value isLeft = emitOr(isFirst, isBefore(last, x));
        x.index = b.create<arith::SelectOp>(isLeft, i, none);
        Candidate better = choose({best[0], best[1]}, x);
        return SmallVector<Value>{better.value, better.index};
      });
  return {found[0], found[1]};
}

/// Places alternate between the halves of the buffers: one is read by slower
/// warps while faster ones already fill the other.
Candidate TopKEmitter::findInBlock(Candidate best, Value place) {
  for (int64_t mask = 1; mask < kWarp; mask *= 2)
    best = choose(best, {emitShuffle(b, best.value, mask),
                         emitShuffle(b, best.index, mask)});
  Value first = b.mul(b.rem(place, b.index(2)), b.index(kWarps));
  Value lane = b.rem(frame.thread, b.index(kWarp));
  Value warp = b.div(frame.thread, b.index(kWarp));
  b.when(b.equal(lane, b.index(0)), [&] {
    Value at = b.add(first, warp);
    values.store(b, frame.loc, best.value, at);
    Value wide = b.create<arith::IndexCastOp>(b.getI64Type(), best.index);
    indices.store(b, frame.loc, wide, at);
  });
  emitBarrier(b);
  Candidate all{b.zero(type), b.index(-1)};
  for (int64_t i = 0; i < kWarps; ++i) {
    Value at = b.add(first, b.index(i));
    Value index = b.create<arith::IndexCastOp>(b.getIndexType(),
                                               indices.load(b, frame.loc, at));
    all = choose(all, {values.load(b, frame.loc, at), index});
  }
  return all;
}

void TopKEmitter::store(Value place, Candidate found) {
  SmallVector<Value> at(row);
  at.insert(at.begin() + op.getAxis(), place);
  Value index = b.create<arith::IndexCastOp>(b.getI64Type(), found.index);
  frame.elements.define(op.getValues(), at, found.value);
  frame.elements.define(op.getIndices(), at, index);
  storeResults(b, frame,
               llvm::to_vector(llvm::seq<unsigned>(frame.results.size())), 1,
               [&](int64_t) { return at; });
}

void TopKEmitter::emit() {
  row = b.delinearize(frame.block, frame.sizes(b, getRows(op)));
  Value k = b.index(int64_t(op.getK()));
  SmallVector<Value> start = {b.zero(type), b.index(-1)};
  b.loop(b.index(0), k, start, [&](Value place, ValueRange last) {
    Candidate best = findInThread({last[0], last[1]});
    best = findInBlock(best, place);
    b.when(b.equal(frame.thread, b.index(0)), [&] { store(place, best); });
    return SmallVector<Value>{best.value, best.index};
  });
}

LaunchPlan planTopK(TopKOp op) {
  return {getNumElements(getRows(op), op.getContext()), kThreads};
}

void emitTopK(KernelBuilder &b, DeviceFrame &frame, TopKOp op) {
  TopKEmitter(b, frame, op).emit();
}

} // namespace tcc::cuda
