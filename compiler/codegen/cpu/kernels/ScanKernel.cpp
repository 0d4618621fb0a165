//===- ScanKernel.cpp - Running sums and products -------------------------===//

#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "compiler/codegen/region/ScanPlan.h"

#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

static int64_t getRowCountPerTask(ScanPlan &plan,
                                  ArrayRef<SymbolAttr> symbols) {
  return getRowsPerTask(getMaxCount(plan.extent, symbols));
}

FailureOr<TaskPlan> planScanKernel(FusedOp region,
                                   ArrayRef<SymbolAttr> symbols) {
  ScanPlan plan(region);
  return TaskPlan{plan.getRowCount().ceilDiv(getRowCountPerTask(plan, symbols)),
                  0};
}

/// Walks one row: `row` holds the indices of the other axes.
static void emitRow(OpBuilder &b, KernelFrame &frame, ScanPlan &plan,
                    ValueRange row) {
  Location loc = frame.loc;
  CumulativeOp op = plan.op;
  Type elementType = getElementTypeOrSelf(op.getResult());
  Value extent = frame.size(b, plan.extent);
  auto loop =
      b.create<scf::ForOp>(loc, emitIndex(b, loc, 0), extent,
                           emitIndex(b, loc, 1), plan.emitNeutral(b, loc));
  OpBuilder inner = OpBuilder::atBlockEnd(loop.getBody());
  SmallVector<Value> at =
      plan.getIndices(inner, row, loop.getInductionVar(), extent);
  Value before = loop.getRegionIterArg(0);
  Value x = frame.elements.element(inner, loc, op.getX(), at);
  Value after = plan.emitCombine(inner, loc, before, x);
  Value element = op.getExclusive() ? before : after;
  frame.elements.define(op.getResult(), at,
                        emitRounding(inner, loc, element, elementType));
  for (auto [yielded, buffer] :
       llvm::zip_equal(frame.getYields(), frame.results))
    frame.elements.storeElement(inner, loc, yielded, at, buffer);
  inner.create<scf::YieldOp>(loc, after);
}

LogicalResult emitScanKernel(OpBuilder &b, KernelFrame &frame) {
  ScanPlan plan(frame.region);
  Location loc = frame.loc;
  int64_t rowsPerTask = getRowCountPerTask(plan, frame.symbols);
  emitLoop(b, loc, frame.firstTask, frame.lastTask, 1,
           [&](OpBuilder &b, Value task) {
             Value count = emitIndex(b, loc, rowsPerTask);
             Value from = emitMul(b, loc, task, count);
             Value rows = frame.size(b, plan.getRowCount());
             Value to = emitMin(b, loc, emitAdd(b, loc, from, count), rows);
             emitLoop(b, loc, from, to, 1, [&](OpBuilder &b, Value position) {
               SmallVector<Value> sizes;
               for (AffineExpr extent : plan.rows)
                 sizes.push_back(frame.elements.size(b, loc, extent));
               SmallVector<Value> row =
                   emitDelinearize(b, loc, position, sizes);
               emitRow(b, frame, plan, row);
             });
           });
  return success();
}

} // namespace tcc::cpu
