//===- TopK.cpp - The best elements of each row, sorted -------------------===//
//
// The best so far stay sorted in the worker's scratch; a better element moves
// those after it by one. Rows of that size fit into the first-level cache.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cpu/kernels/IrregularEmitter.h"
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

FailureOr<TaskPlan> planTopK(TopKOp op, ArrayRef<SymbolAttr> symbols) {
  AffineExpr rows = getNumElements(getRows(op), op.getContext());
  return TaskPlan{rows.ceilDiv(getRowCountPerTask(op, symbols)),
                  2 * getIndexOffset(op)};
}

namespace {

class TopKEmitter {
public:
  TopKEmitter(OpBuilder &b, KernelFrame &frame, TopKOp op);
  void emitRow(OpBuilder &b, ValueRange row);

private:
  using Body = llvm::function_ref<void(OpBuilder &)>;
  void emitIf(OpBuilder &b, Value condition, Body body);
  Value emitInsertion(OpBuilder &b, Value x, Value index, Value count);
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

void TopKEmitter::emitIf(OpBuilder &b, Value condition, Body body) {
  auto branch = b.create<scf::IfOp>(loc, condition, /*withElseRegion=*/false);
  OpBuilder inner = branch.getThenBodyBuilder();
  body(inner);
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

/// Returns how many elements there are after x was looked at.
Value TopKEmitter::emitInsertion(OpBuilder &b, Value x, Value index,
                                 Value count) {
  ScalarEmitter e(b, loc);
  Value last = emitIndex(b, loc, int64_t(op.getK()) - 1);
  Value isFull = e.compare(arith::CmpIPredicate::ugt, count, last);
  Value worst = values.load(b, loc, last);
  Value isWanted = e.emit<arith::OrIOp>(
      e.emit<arith::XOrIOp>(isFull, e.constant(b.getI1Type(), 1)),
      emitIsBetter(b, loc, op, x, worst));
  emitIf(b, isWanted, [&](OpBuilder &b) {
    Value place = findPlace(b, x, emitMin(b, loc, count, last));
    values.store(b, loc, x, place);
    Value wide = b.create<arith::IndexCastOp>(loc, b.getI64Type(), index);
    indices.store(b, loc, wide, place);
  });
  Value more = emitAdd(b, loc, count, emitIndex(b, loc, 1));
  return emitMin(b, loc, more, emitIndex(b, loc, int64_t(op.getK())));
}

void TopKEmitter::emitRow(OpBuilder &b, ValueRange row) {
  Value extent =
      frame.elements.size(b, loc, getExtent(op.getX(), op.getAxis()));
  auto loop = b.create<scf::ForOp>(loc, emitIndex(b, loc, 0), extent,
                                   emitIndex(b, loc, 1), emitIndex(b, loc, 0));
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  SmallVector<Value> at(row);
  at.insert(at.begin() + op.getAxis(), loop.getInductionVar());
  Value x = frame.elements.element(inner, loc, op.getX(), at);
  Value count =
      emitInsertion(inner, x, loop.getInductionVar(), loop.getRegionIterArg(0));
  inner.create<scf::YieldOp>(loc, count);
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

void emitTopK(OpBuilder &b, KernelFrame &frame, TopKOp op) {
  Location loc = frame.loc;
  if (op.getK() == 0)
    return;
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
               emitter.emitRow(b, row);
             });
           });
}

} // namespace tcc::cpu
