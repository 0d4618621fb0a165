//===- ScanKernel.cpp - Running sums and products -------------------------===//

#include "compiler/codegen/kernel/KernelEmitter.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

static CumulativeOp getScan(FusedOp region) {
  return *region.getBody().getOps<CumulativeOp>().begin();
}

/// The extents of all axes but the one that is walked.
static Extents getRows(CumulativeOp op) {
  Extents rows = getExtents(op.getX());
  rows.erase(rows.begin() + op.getAxis());
  return rows;
}

static int64_t getRowCountPerTask(CumulativeOp op,
                                  ArrayRef<SymbolAttr> symbols) {
  return getRowsPerTask(
      getMaxCount(getExtent(op.getX(), op.getAxis()), symbols));
}

FailureOr<TaskPlan> planScanKernel(FusedOp region,
                                   ArrayRef<SymbolAttr> symbols) {
  CumulativeOp op = getScan(region);
  AffineExpr rows = getNumElements(getRows(op), region.getContext());
  return TaskPlan{rows.ceilDiv(getRowCountPerTask(op, symbols)), 0};
}

static Value emitCombine(const ScalarEmitter &e, CumulativeOp op, Value lhs,
                         Value rhs) {
  bool isSum = op.getKind() == ReduceKind::sum;
  if (isa<FloatType>(lhs.getType()))
    return isSum ? e.add(lhs, rhs) : e.mul(lhs, rhs);
  return isSum ? e.emit<arith::AddIOp>(lhs, rhs)
               : e.emit<arith::MulIOp>(lhs, rhs);
}

/// Walks one row: `row` holds the indices of the other axes.
static void emitRow(OpBuilder &b, KernelFrame &frame, CumulativeOp op,
                    ValueRange row) {
  Location loc = frame.loc;
  int64_t axis = op.getAxis();
  Type elementType = getElementTypeOrSelf(op.getResult());
  Value extent = frame.elements.size(b, loc, getExtent(op.getX(), axis));
  Value init = ScalarEmitter(b, loc).constant(
      getScalarType(elementType), op.getKind() == ReduceKind::sum ? 0 : 1);
  auto loop = b.create<scf::ForOp>(loc, emitIndex(b, loc, 0), extent,
                                   emitIndex(b, loc, 1), init);
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  Value step = loop.getInductionVar();
  if (op.getReverse())
    step = emitSub(inner, loc, emitSub(inner, loc, extent, step),
                   emitIndex(inner, loc, 1));
  SmallVector<Value> at(row);
  at.insert(at.begin() + axis, step);
  Value before = loop.getRegionIterArg(0);
  Value x = frame.elements.element(inner, loc, op.getX(), at);
  Value after = emitCombine(ScalarEmitter(inner, loc), op, before, x);
  Value element = op.getExclusive() ? before : after;
  frame.elements.define(op.getResult(), at,
                        emitRounding(inner, loc, element, elementType));
  for (auto [yielded, buffer] :
       llvm::zip_equal(frame.getYields(), frame.results))
    frame.elements.storeElement(inner, loc, yielded, at, buffer);
  inner.create<scf::YieldOp>(loc, after);
}

LogicalResult emitScanKernel(OpBuilder &b, KernelFrame &frame) {
  CumulativeOp op = getScan(frame.region);
  Location loc = frame.loc;
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
               emitRow(b, frame, op, row);
             });
           });
  return success();
}

} // namespace tcc::codegen
