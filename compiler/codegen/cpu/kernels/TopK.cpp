//===- TopK.cpp - The best elements of each row, sorted -------------------===//
//
// The best so far lie in the worker's scratch. Few stay sorted: a better
// element moves those after it by one. Many are a list of what is better than
// the last one of them was; where it is full, it is sorted and cut.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"
#include "compiler/codegen/cpu/kernels/RadixSort.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

static Extents getRows(TopKOp op) {
  Extents rows = getExtents(op.getX());
  rows.erase(rows.begin() + op.getAxis());
  return rows;
}

static int64_t getRowCountPerTask(TopKOp op, ArrayRef<SymbolAttr> symbols) {
  return getRowsPerTask(
      getMaxCount(getExtent(op.getX(), op.getAxis()), symbols));
}

/// Where the indices lie in the scratch, after the values.
static int64_t getIndexOffset(TopKOp op) { return int64_t(op.getK()) * 8; }

namespace {

/// The list of elements of a row that may be among the best.
struct ListPlan {
  int64_t capacity = 0; ///< 0: the best stay sorted
  bool holdsRow;        ///< the whole one
  Type key, index;

  ListPlan(TopKOp op, ArrayRef<SymbolAttr> symbols);
};

} // namespace

ListPlan::ListPlan(TopKOp op, ArrayRef<SymbolAttr> symbols) {
  // More take longer to insert than to sort.
  constexpr int64_t kInserted = 64, kLeast = 1024;
  int64_t k = op.getK();
  if (k <= kInserted)
    return;
  int64_t extent = getMaxCount(getExtent(op.getX(), op.getAxis()), symbols);
  capacity = std::min(extent, k + std::max(k, kLeast));
  holdsRow = capacity == extent;
  auto getInteger = [&](bool isWide) {
    return IntegerType::get(op.getContext(), isWide ? 64 : 32);
  };
  key =
      getInteger(getElementTypeOrSelf(op.getX()).getIntOrFloatBitWidth() > 32);
  index = getInteger(extent > std::numeric_limits<int32_t>::max());
}

FailureOr<TaskPlan> planTopK(TopKOp op, ArrayRef<SymbolAttr> symbols) {
  AffineExpr rows = getNumElements(getRows(op), op.getContext());
  ListPlan list(op, symbols);
  return TaskPlan{rows.ceilDiv(getRowCountPerTask(op, symbols)),
                  list.capacity == 0 ? 2 * getIndexOffset(op)
                                     : RadixSort::getBytes(list.key, list.index,
                                                           list.capacity)};
}

// --- Few ---------------------------------------------------------------------

namespace {

class TopKEmitter {
public:
  TopKEmitter(OpBuilder &b, KernelFrame &frame, TopKOp op);
  void emitRow(OpBuilder &b, ValueRange row);

private:
  void insert(OpBuilder &b, Value x, Value index, Value count);
  Value findPlace(OpBuilder &b, Value x, Value count);
  void emitResults(OpBuilder &b, ValueRange row);

  KernelFrame &frame;
  TopKOp op;
  Location loc;
  Buffer values, indices;
};

} // namespace

TopKEmitter::TopKEmitter(OpBuilder &b, KernelFrame &frame, TopKOp op)
    : frame(frame), op(op), loc(frame.loc),
      values(frame.scratch, getScalarType(getElementTypeOrSelf(op.getX()))) {
  Value address = b.create<LLVM::GEPOp>(
      loc, frame.scratch.getType(), b.getI8Type(), frame.scratch,
      ArrayRef<LLVM::GEPArg>{int32_t(getIndexOffset(op))});
  indices = Buffer(address, b.getI64Type());
}

/// Walks from the end of the sorted elements to the place of x, moving those
/// that x is better than.
Value TopKEmitter::findPlace(OpBuilder &b, Value x, Value start) {
  auto loop = b.create<scf::WhileOp>(loc, start.getType(), start);
  Block *before = b.createBlock(&loop.getBefore(), {}, start.getType(), loc);
  Value place = before->getArgument(0);
  Value zero = emitIndex(b, loc, 0), one = emitIndex(b, loc, 1);
  Value isFirst =
      b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::eq, place, zero);
  Value previous = b.create<arith::SelectOp>(loc, isFirst, zero,
                                             emitSub(b, loc, place, one));
  Value moves = emitIsBetter(b, loc, op, x, values.load(b, loc, previous));
  Value isInside =
      b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::ne, place, zero);
  b.create<scf::ConditionOp>(loc, b.create<arith::AndIOp>(loc, isInside, moves),
                             place);
  Block *after = b.createBlock(&loop.getAfter(), {}, start.getType(), loc);
  place = after->getArgument(0);
  previous = emitSub(b, loc, place, emitIndex(b, loc, 1));
  values.store(b, loc, values.load(b, loc, previous), place);
  indices.store(b, loc, indices.load(b, loc, previous), place);
  b.create<scf::YieldOp>(loc, previous);
  b.setInsertionPointAfter(loop);
  return loop.getResult(0);
}

/// Puts x where it belongs among the `count` that are sorted.
void TopKEmitter::insert(OpBuilder &b, Value x, Value index, Value count) {
  Value place = findPlace(b, x, count);
  values.store(b, loc, x, place);
  Value wide = b.create<arith::IndexCastOp>(loc, b.getI64Type(), index);
  indices.store(b, loc, wide, place);
}

/// The worst of the best so far stays in a register: most elements are only
/// compared with it.
void TopKEmitter::emitRow(OpBuilder &b, ValueRange row) {
  auto getElement = [&](OpBuilder &b, Value i) {
    SmallVector<Value> at(row);
    at.insert(at.begin() + op.getAxis(), i);
    return frame.elements.element(b, loc, op.getX(), at);
  };
  Value k = emitIndex(b, loc, int64_t(op.getK()));
  Value last = emitIndex(b, loc, int64_t(op.getK()) - 1);
  emitLoop(b, loc, emitIndex(b, loc, 0), k, 1,
           [&](OpBuilder &b, Value i) { insert(b, getElement(b, i), i, i); });
  Value extent =
      frame.elements.size(b, loc, getExtent(op.getX(), op.getAxis()));
  auto loop = b.create<scf::ForOp>(loc, k, extent, emitIndex(b, loc, 1),
                                   values.load(b, loc, last));
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  Value worst = loop.getRegionIterArg(0), i = loop.getInductionVar();
  Value x = getElement(inner, i);
  auto branch = inner.create<scf::IfOp>(loc, worst.getType(),
                                        emitIsBetter(inner, loc, op, x, worst),
                                        /*withElseRegion=*/true);
  OpBuilder better = branch.getThenBodyBuilder();
  insert(better, x, i, last);
  better.create<scf::YieldOp>(loc, values.load(better, loc, last));
  branch.getElseBodyBuilder().create<scf::YieldOp>(loc, worst);
  inner.create<scf::YieldOp>(loc, branch.getResult(0));
  emitResults(b, row);
}

void TopKEmitter::emitResults(OpBuilder &b, ValueRange row) {
  emitLoop(b, loc, emitIndex(b, loc, 0), emitIndex(b, loc, int64_t(op.getK())),
           1, [&](OpBuilder &b, Value i) {
             SmallVector<Value> at(row);
             at.insert(at.begin() + op.getAxis(), i);
             frame.elements.define(op.getValues(), at, values.load(b, loc, i));
             frame.elements.define(op.getIndices(), at,
                                   indices.load(b, loc, i));
             for (auto [yielded, buffer] :
                  llvm::zip_equal(frame.getYields(), frame.results))
               frame.elements.storeElement(b, loc, yielded, at, buffer);
           });
}

// --- Many --------------------------------------------------------------------

namespace {

class ListEmitter {
public:
  ListEmitter(KernelBuilder &b, KernelFrame &frame, TopKOp op, ListPlan plan)
      : b(b), frame(frame), op(op), plan(plan),
        list(b, frame.scratch, plan.key, plan.index, plan.capacity) {}
  void emitRow(ValueRange row);

private:
  Value makeKey(Value x);
  SmallVector<Value> add(Value x, Value index, ValueRange carried);
  SmallVector<Value> cut(ValueRange carried);
  Value load(ValueRange row, Value i) {
    SmallVector<Value> at(row);
    at.insert(at.begin() + op.getAxis(), i);
    return frame.elements.element(b, frame.loc, op.getX(), at);
  }
  void store(ValueRange row, Value place, Value index);
  Value integer(Type type, int64_t value) {
    return b.create<arith::ConstantOp>(b.getIntegerAttr(type, value));
  }

  KernelBuilder &b;
  KernelFrame &frame;
  TopKOp op;
  ListPlan plan;
  RadixSort list;
};

} // namespace

/// Smaller for what comes earlier. NaN counts as the largest, and the zeros as
/// equal.
Value ListEmitter::makeKey(Value x) {
  Value low = integer(plan.key, 1);
  unsigned width = plan.key.getIntOrFloatBitWidth();
  Value sign = b.create<arith::ShLIOp>(low, integer(plan.key, width - 1));
  Value ones = integer(plan.key, -1), bits;
  if (isa<FloatType>(x.getType())) {
    Value isNan = b.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
    x = b.create<arith::AddFOp>(x, b.zero(x.getType()));
    bits = b.create<arith::BitcastOp>(plan.key, x);
    Value isNegative = b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, bits,
                                               integer(plan.key, 0));
    Value flipped = b.create<arith::SelectOp>(isNegative, ones, sign);
    bits = b.create<arith::SelectOp>(isNan, ones,
                                     b.create<arith::XOrIOp>(bits, flipped));
  } else {
    bool isUnsigned = isUnsignedElement(op.getX());
    bits = b.widen(x, plan.key, isUnsigned);
    if (!isUnsigned)
      bits = b.create<arith::XOrIOp>(bits, sign);
  }
  return op.getSmallest() ? bits : b.create<arith::XOrIOp>(bits, ones);
}

/// Takes what is before the limit, or anything while there is none. Carried:
/// how many the list has, where it lies, whether there is a limit, and that.
SmallVector<Value> ListEmitter::add(Value x, Value index, ValueRange carried) {
  Value key = makeKey(x), place = b.add(carried[1], carried[0]);
  b.store(key, list.keys, place);
  b.store(b.create<arith::IndexCastOp>(plan.index, index), list.indices, place);
  Value isBefore =
      b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, key, carried[3]);
  Value isWanted = b.create<arith::OrIOp>(isBefore, carried[2]);
  Value one = b.create<arith::IndexCastUIOp>(b.getIndexType(), isWanted);
  SmallVector<Value> next(carried);
  next[0] = b.add(carried[0], one);
  return next;
}

/// Keeps the best of a full list.
SmallVector<Value> ListEmitter::cut(ValueRange carried) {
  Value from = list.sort(carried[1], carried[0]);
  Value k = b.index(int64_t(op.getK()));
  Value last = b.load(list.keys, b.add(from, b.sub(k, b.index(1))));
  return {k, from, b.create<arith::ConstantIntOp>(0, 1), last};
}

void ListEmitter::store(ValueRange row, Value place, Value index) {
  Value position = b.create<arith::IndexCastUIOp>(b.getIndexType(), index);
  SmallVector<Value> at(row);
  at.insert(at.begin() + op.getAxis(), place);
  frame.elements.define(op.getValues(), at, load(row, position));
  frame.elements.define(op.getIndices(), at,
                        b.create<arith::IndexCastOp>(b.getI64Type(), position));
  for (auto [yielded, buffer] :
       llvm::zip_equal(frame.getYields(), frame.results))
    frame.elements.storeElement(b, frame.loc, yielded, at, buffer);
}

void ListEmitter::emitRow(ValueRange row) {
  Value extent = frame.size(b, getExtent(op.getX(), op.getAxis()));
  Value isOpen = b.create<arith::ConstantIntOp>(1, 1);
  SmallVector<Value> start = {b.index(0), b.index(0), isOpen,
                              integer(plan.key, 0)};
  auto carried =
      b.loop(b.index(0), extent, start, [&](Value i, ValueRange carried) {
        if (plan.holdsRow) // nothing is left out
          return add(load(row, i), i,
                     {carried[0], carried[1], isOpen, start[3]});
        SmallVector<Value> next = add(load(row, i), i, carried);
        Value isFull = b.equal(next[0], b.index(plan.capacity));
        return b.choose(
            isFull, ValueRange(next).getTypes(), [&] { return cut(next); },
            [&] { return next; });
      });
  Value from = list.sort(carried[1], carried[0]);
  b.loop(b.index(int64_t(op.getK())), [&](Value place) {
    store(row, place, b.load(list.indices, b.add(from, place)));
  });
}

void emitTopK(OpBuilder &b, KernelFrame &frame, TopKOp op) {
  Location loc = frame.loc;
  if (op.getK() == 0)
    return;
  ListPlan list(op, frame.symbols);
  TopKEmitter emitter(b, frame, op);
  Extents extents = getRows(op);
  int64_t rowsPerTask = getRowCountPerTask(op, frame.symbols);
  emitLoop(b, loc, frame.firstTask, frame.lastTask, 1,
           [&](OpBuilder &b, Value task) {
             Value count = emitIndex(b, loc, rowsPerTask);
             Value from = emitMul(b, loc, task, count);
             Value rows = frame.elements.size(
                 b, loc, getNumElements(extents, b.getContext()));
             Value to = emitMin(b, loc, emitAdd(b, loc, from, count), rows);
             emitLoop(b, loc, from, to, 1, [&](OpBuilder &b, Value position) {
               SmallVector<Value> sizes;
               for (AffineExpr extent : extents)
                 sizes.push_back(frame.elements.size(b, loc, extent));
               SmallVector<Value> row =
                   emitDelinearize(b, loc, position, sizes);
               if (list.capacity == 0)
                 return emitter.emitRow(b, row);
               KernelBuilder inner(loc, b);
               ListEmitter(inner, frame, op, list).emitRow(row);
             });
           });
}

} // namespace tcc::cpu
