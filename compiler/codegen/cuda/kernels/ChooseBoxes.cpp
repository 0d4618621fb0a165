//===- ChooseBoxes.cpp - Non-maximum suppression --------------------------===//
//
// A block takes a batch and class. Each thread keeps a bit for each of its
// boxes in shared memory: whether that is a candidate still. Those that overlap
// the last one that was chosen are dropped while the next one is looked for.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/Irregular.h"
#include "compiler/codegen/region/Boxes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cuda {

static constexpr int64_t kBoxThreads = 256;
static constexpr int64_t kBoxWarps = kBoxThreads / kWarp;
static constexpr int64_t kBits = 32; // of a word
static constexpr int64_t kWordBytes = 32 << 10;

/// Words of all threads at most.
static int64_t getWordCount(ChooseBoxesOp op, ArrayRef<SymbolAttr> symbols) {
  int64_t boxes = getMaxCount(op.getBoxCount(), symbols);
  return llvm::divideCeil(boxes, kBits * kBoxThreads) * kBoxThreads;
}

FailureOr<LaunchPlan> planChooseBoxes(ChooseBoxesOp op,
                                      ArrayRef<SymbolAttr> symbols) {
  if (getWordCount(op, symbols) * 4 > kWordBytes)
    return op.emitOpError("has more than ")
           << kWordBytes * 8 << " boxes, which is not supported";
  Extents rows = getExtents(op.getScores());
  rows.pop_back();
  return LaunchPlan{getNumElements(rows, op.getContext()), kBoxThreads};
}

namespace {

class BoxEmitter {
public:
  BoxEmitter(KernelBuilder &b, DeviceFrame &frame, ChooseBoxesOp op)
      : b(b), frame(frame), op(op),
        words(frame.allocateShared(b, b.getI32Type(),
                                   getWordCount(op, frame.symbols))),
        keys(frame.allocateShared(b, b.getI64Type(), 2 * kBoxWarps)) {}
  void emit();

private:
  KernelBuilder &b;
  DeviceFrame &frame;
  ChooseBoxesOp op;
  Buffer words; // a bit for each box
  Buffer keys;  // the best of each warp, for two places
  Value batch, group, extent, threshold;

  Value number(int64_t value, unsigned width = 32) {
    return b.create<arith::ConstantIntOp>(value, width);
  }
  Value larger(Value x, Value y) { return b.create<arith::MaxUIOp>(x, y); }
  Value getKey(Value box) {
    return emitBoxKey(b,
                      frame.elements.element(b, frame.loc, op.getScores(),
                                             {batch, group, box}),
                      box);
  }
  void store(Value place, Value box) {
    Value at = frame.elements.position(b, frame.loc, op.getBoxes(),
                                       {batch, group, place});
    frame.results[0].store(b, frame.loc, box, at);
  }
  Value visit(llvm::function_ref<Value(Value)> load,
              llvm::function_ref<Value(Value box)> isLeft);
  Value findFirst();
  Value findNext(Value last);
  Value findInBlock(Value best, Value half);
};

} // namespace

/// Goes over the words of this thread, which `load` gives, and the boxes of
/// each: keeps whether `isLeft`, and returns the best key of those, else 0.
Value BoxEmitter::visit(llvm::function_ref<Value(Value)> load,
                        llvm::function_ref<Value(Value box)> isLeft) {
  Value count = b.ceilDiv(extent, kBits * kBoxThreads);
  return b.loop(
      b.index(0), count, number(0, 64), [&](Value i, ValueRange best) {
        Value at = b.add(b.mul(i, b.index(kBoxThreads)), frame.thread);
        Value old = load(at);
        auto kept = b.loop(
            b.index(0), b.index(kBits), ValueRange{number(0), best[0]},
            [&](Value bit, ValueRange carried) -> SmallVector<Value> {
              Value step = b.add(b.mul(i, b.index(kBits)), bit);
              Value box =
                  b.add(b.mul(step, b.index(kBoxThreads)), frame.thread);
              Value place = b.create<arith::IndexCastOp>(b.getI32Type(), bit);
              Value isIn = b.create<arith::TruncIOp>(
                  b.getI1Type(), b.create<arith::ShRUIOp>(old, place));
              isIn = b.create<arith::AndIOp>(isIn, b.less(box, extent));
              auto found = b.choose(
                  isIn, {b.getI1Type(), b.getI64Type()},
                  [&] {
                    Value left = isLeft(box);
                    Value key = b.create<arith::SelectOp>(left, getKey(box),
                                                          number(0, 64));
                    return SmallVector<Value>{left, key};
                  },
                  [&] {
                    return SmallVector<Value>{number(0, 1), number(0, 64)};
                  });
              Value set = b.create<arith::ShLIOp>(
                  b.create<arith::ExtUIOp>(b.getI32Type(), found[0]), place);
              return {b.create<arith::OrIOp>(carried[0], set),
                      larger(carried[1], found[1])};
            });
        words.store(b, frame.loc, kept[0], at);
        return SmallVector<Value>{kept[1]};
      })[0];
}

Value BoxEmitter::findFirst() {
  return visit([&](Value) { return number(-1); },
               [&](Value box) {
                 return frame.elements.element(b, frame.loc, op.getCandidates(),
                                               {batch, group, box});
               });
}

Value BoxEmitter::findNext(Value last) {
  Box own = emitBox(b, frame, op, batch, last);
  auto isLeft = [&](Value box) -> Value {
    Box other = emitBox(b, frame, op, batch, box);
    Value isGone = b.create<arith::OrIOp>(
        b.equal(box, last), emitOverlaps(b, other, own, threshold));
    return b.create<arith::XOrIOp>(isGone, number(1, 1));
  };
  return visit([&](Value at) { return words.load(b, frame.loc, at); }, isLeft);
}

/// Places alternate between the halves of `keys`: one is read by slower warps
/// while faster ones already fill the other.
Value BoxEmitter::findInBlock(Value best, Value half) {
  for (int64_t mask = 1; mask < kWarp; mask *= 2)
    best = larger(best, emitShuffle(b, best, mask));
  Value first = b.mul(half, b.index(kBoxWarps));
  Value lane = b.rem(frame.thread, b.index(kWarp));
  Value warp = b.div(frame.thread, b.index(kWarp));
  b.when(b.equal(lane, b.index(0)),
         [&] { keys.store(b, frame.loc, best, b.add(first, warp)); });
  emitBarrier(b);
  Value all = number(0, 64);
  for (int64_t i = 0; i < kBoxWarps; ++i)
    all = larger(all, keys.load(b, frame.loc, b.add(first, b.index(i))));
  return all;
}

void BoxEmitter::emit() {
  Extents rows = getExtents(op.getScores());
  rows.pop_back();
  SmallVector<Value> row = b.delinearize(frame.block, frame.sizes(b, rows));
  batch = row[0], group = row[1];
  extent = frame.size(b, op.getBoxCount());
  threshold = frame.elements.element(b, frame.loc, op.getThreshold(), {});
  Value limit = emitBoxLimit(b, frame, op);
  Value best = findInBlock(findFirst(), b.index(1));
  Type types[] = {b.getIndexType(), b.getI64Type()};
  auto loop = b.create<scf::WhileOp>(types, ValueRange{b.index(0), best});
  {
    OpBuilder::InsertionGuard guard(b);
    SmallVector<Location> locations(2, frame.loc);
    Block *before = b.createBlock(&loop.getBefore(), {}, types, locations);
    Value place = before->getArgument(0), key = before->getArgument(1);
    Value isAny =
        b.create<arith::CmpIOp>(arith::CmpIPredicate::ne, key, number(0, 64));
    b.create<scf::ConditionOp>(
        b.create<arith::AndIOp>(isAny, b.less(place, limit)),
        before->getArguments());
    Block *after = b.createBlock(&loop.getAfter(), {}, types, locations);
    place = after->getArgument(0), key = after->getArgument(1);
    Value box = emitBoxOfKey(b, key);
    b.when(b.equal(frame.thread, b.index(0)), [&] {
      store(place, b.create<arith::IndexCastOp>(b.getI64Type(), box));
    });
    Value next = findInBlock(findNext(box), b.rem(place, b.index(2)));
    b.create<scf::YieldOp>(ValueRange{b.add(place, b.index(1)), next});
  }
  b.loop(b.add(loop.getResult(0), frame.thread),
         frame.size(b, op.getPlaceCount()), b.index(kBoxThreads),
         [&](Value place) { store(place, number(-1, 64)); });
}

void emitChooseBoxes(KernelBuilder &b, DeviceFrame &frame, ChooseBoxesOp op) {
  BoxEmitter(b, frame, op).emit();
}

} // namespace tcc::cuda
