//===- ChooseBoxes.cpp - Non-maximum suppression --------------------------===//
//
// A task is a batch and class. Its candidates are a heap in the worker's
// scratch, by keys that order scores and boxes at once; the best one is
// compared with those that were chosen, whose borders lie side by side.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"
#include "compiler/codegen/region/Boxes.h"

#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <limits>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

/// Chosen boxes that one is compared with at once.
static constexpr int64_t kBoxLanes = 16;

/// Bytes of the heap, and of each border and the areas of chosen boxes.
static int64_t getHeapBytes(ChooseBoxesOp op, ArrayRef<SymbolAttr> symbols) {
  return llvm::alignTo(getMaxCount(op.getBoxCount(), symbols) * 8, 64);
}
static int64_t getPartBytes(ChooseBoxesOp op, ArrayRef<SymbolAttr> symbols) {
  return llvm::alignTo(getMaxCount(op.getPlaceCount(), symbols), kBoxLanes) * 4;
}

TaskPlan planChooseBoxes(ChooseBoxesOp op, ArrayRef<SymbolAttr> symbols) {
  Extents rows = getExtents(op.getScores());
  rows.pop_back();
  return {getNumElements(rows, op.getContext()),
          getHeapBytes(op, symbols) +
              (Box::kBorders + 1) * getPartBytes(op, symbols)};
}

namespace {

class BoxEmitter {
public:
  BoxEmitter(KernelBuilder &b, KernelFrame &frame, ChooseBoxesOp op);
  void emitRow(Value batch, Value group);

private:
  Value select(Value condition, Value x, Value y) {
    return b.create<arith::SelectOp>(condition, x, y);
  }
  Value isAbove(Value x, Value y) {
    return b.create<arith::CmpIOp>(arith::CmpIPredicate::ugt, x, y);
  }
  /// while (condition(carried)) carried = body(carried)
  using Condition = llvm::function_ref<Value(ValueRange)>;
  using Body = llvm::function_ref<SmallVector<Value>(ValueRange)>;
  SmallVector<Value> repeat(ValueRange carried, Condition condition, Body body);

  Value gather(Value batch, Value group);
  void sift(Value place, Value key, Value count);
  Value pop(Value count);
  Value overlapsAny(const Box &box, Value chosen);
  void add(const Box &box, Value chosen);

  KernelBuilder &b;
  KernelFrame &frame;
  ChooseBoxesOp op;
  Memory heap;
  Memory chosenParts[Box::kBorders + 1];
  Value threshold;
};

} // namespace

BoxEmitter::BoxEmitter(KernelBuilder &b, KernelFrame &frame, ChooseBoxesOp op)
    : b(b), frame(frame), op(op), heap{frame.scratch, b.getI64Type()} {
  int64_t offset = getHeapBytes(op, frame.symbols);
  for (Memory &part : chosenParts) {
    part = b.view(frame.scratch, offset, b.getF32Type());
    offset += getPartBytes(op, frame.symbols);
  }
}

SmallVector<Value> BoxEmitter::repeat(ValueRange carried, Condition condition,
                                      Body body) {
  auto loop = b.create<scf::WhileOp>(carried.getTypes(), carried);
  OpBuilder::InsertionGuard guard(b);
  SmallVector<Location> locations(carried.size(), frame.loc);
  Block *before =
      b.createBlock(&loop.getBefore(), {}, carried.getTypes(), locations);
  Value goesOn = condition(before->getArguments());
  b.create<scf::ConditionOp>(goesOn, before->getArguments());
  Block *after =
      b.createBlock(&loop.getAfter(), {}, carried.getTypes(), locations);
  b.create<scf::YieldOp>(body(after->getArguments()));
  return SmallVector<Value>(loop.getResults());
}

/// The keys of the candidates, in the order of boxes; returns how many.
Value BoxEmitter::gather(Value batch, Value group) {
  Value extent = frame.size(b, op.getBoxCount());
  return b.loop(b.index(0), extent, b.index(0), [&](Value i, ValueRange count) {
    Value at[] = {batch, group, i};
    Value score = frame.elements.element(b, frame.loc, op.getScores(), at);
    Value isOne = frame.elements.element(b, frame.loc, op.getCandidates(), at);
    b.store(emitBoxKey(b, score, i), heap, count[0]);
    Value one = b.create<arith::IndexCastUIOp>(b.getIndexType(), isOne);
    return SmallVector<Value>{b.add(count[0], one)};
  })[0];
}

/// Puts `key` at `place` or below, where it is above its children.
void BoxEmitter::sift(Value place, Value key, Value count) {
  Value one = b.index(1), last = b.sub(count, one);
  auto child = [&](Value place) {
    Value left = b.add(b.add(place, place), one);
    Value right = b.min(b.add(left, one), last);
    Value isInside = b.less(left, count);
    left = select(isInside, left, b.index(0));
    right = select(isInside, right, b.index(0));
    Value l = b.load(heap, left), r = b.load(heap, right);
    Value isRight = isAbove(r, l);
    struct {
      Value isInside, place, key;
    } found{isInside, select(isRight, right, left), select(isRight, r, l)};
    return found;
  };
  // The second value is whether the key may be lower still.
  Value yes = b.create<arith::ConstantIntOp>(1, 1);
  Value end = repeat(
      {place, yes}, [&](ValueRange carried) { return carried[1]; },
      [&](ValueRange carried) -> SmallVector<Value> {
        auto below = child(carried[0]);
        Value moves =
            b.create<arith::AndIOp>(below.isInside, isAbove(below.key, key));
        b.when(moves, [&] { b.store(below.key, heap, carried[0]); });
        return {select(moves, below.place, carried[0]), moves};
      })[0];
  b.store(key, heap, end);
}

/// Takes the best candidate from the heap of `count`; returns its box.
Value BoxEmitter::pop(Value count) {
  Value best = b.load(heap, b.index(0)), last = b.sub(count, b.index(1));
  b.when(b.less(b.index(0), last),
         [&] { sift(b.index(0), b.load(heap, last), last); });
  return emitBoxOfKey(b, best);
}

/// Places behind `chosen` hold empty boxes.
Value BoxEmitter::overlapsAny(const Box &box, Value chosen) {
  auto vector = VectorType::get(kBoxLanes, b.getF32Type());
  Box own;
  for (auto [wide, part] : llvm::zip_equal(own.parts, box.parts))
    wide = b.create<vector::BroadcastOp>(vector, part);
  Value limit = b.create<vector::BroadcastOp>(vector, threshold);
  Value no = b.create<arith::ConstantIntOp>(0, 1);
  return repeat(
      {b.index(0), no},
      [&](ValueRange carried) -> Value {
        Value isNone = b.create<arith::XOrIOp>(
            carried[1], b.create<arith::ConstantIntOp>(1, 1));
        return b.create<arith::AndIOp>(isNone, b.less(carried[0], chosen));
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        Box other;
        for (auto [part, memory] : llvm::zip_equal(other.parts, chosenParts))
          part = b.loadVector(memory, carried[0], kBoxLanes);
        Value isHit = emitOverlaps(b, own, other, limit);
        Value any =
            b.create<vector::ReductionOp>(vector::CombiningKind::OR, isHit);
        return {b.add(carried[0], b.index(kBoxLanes)), any};
      })[1];
}

/// Makes `box` the one at place `chosen`. Where lanes begin, those behind
/// become empty.
void BoxEmitter::add(const Box &box, Value chosen) {
  auto vector = VectorType::get(kBoxLanes, b.getF32Type());
  constexpr float infinity = std::numeric_limits<float>::infinity();
  b.when(b.equal(b.rem(chosen, b.index(kBoxLanes)), b.index(0)), [&] {
    for (auto [i, memory] : llvm::enumerate(chosenParts)) {
      float empty = i == Box::kBorders ? 0 : i < 2 ? infinity : -infinity;
      b.store(
          b.create<arith::ConstantOp>(DenseElementsAttr::get(vector, empty)),
          memory, chosen);
    }
  });
  for (auto [part, memory] : llvm::zip_equal(box.parts, chosenParts))
    b.store(part, memory, chosen);
}

void BoxEmitter::emitRow(Value batch, Value group) {
  Value zero = b.index(0), one = b.index(1);
  Value places = frame.size(b, op.getPlaceCount());
  Value limit = emitBoxLimit(b, frame, op);
  threshold = frame.elements.element(b, frame.loc, op.getThreshold(), {});
  Value count = gather(batch, group), half = b.div(count, b.index(2));
  b.loop(zero, half, one, [&](Value i) {
    Value place = b.sub(b.sub(half, one), i);
    sift(place, b.load(heap, place), count);
  });
  auto store = [&](Value place, Value box) {
    Value at = frame.elements.position(b, frame.loc, op.getBoxes(),
                                       {batch, group, place});
    frame.results[0].store(b, frame.loc, box, at);
  };
  Value chosen = repeat(
      {count, zero},
      [&](ValueRange carried) -> Value {
        return b.create<arith::AndIOp>(b.less(zero, carried[0]),
                                       b.less(carried[1], limit));
      },
      [&](ValueRange carried) -> SmallVector<Value> {
        Value number = pop(carried[0]);
        Box box = emitBox(b, frame, op, batch, number);
        Value isHit = overlapsAny(box, carried[1]);
        b.when(
            isHit, [] {},
            [&] {
              add(box, carried[1]);
              store(carried[1],
                    b.create<arith::IndexCastOp>(b.getI64Type(), number));
            });
        return {b.sub(carried[0], one),
                select(isHit, carried[1], b.add(carried[1], one))};
      })[1];
  Value none = b.create<arith::ConstantIntOp>(-1, 64);
  b.loop(chosen, places, one, [&](Value place) { store(place, none); });
}

void emitChooseBoxes(OpBuilder &builder, KernelFrame &frame, ChooseBoxesOp op) {
  emitLoop(builder, frame.loc, frame.firstTask, frame.lastTask, 1,
           [&](OpBuilder &inner, Value task) {
             KernelBuilder b(frame.loc, inner);
             Value groups = frame.size(b, getExtent(op.getScores(), 1));
             BoxEmitter(b, frame, op)
                 .emitRow(b.div(task, groups), b.rem(task, groups));
           });
}

} // namespace tcc::cpu
