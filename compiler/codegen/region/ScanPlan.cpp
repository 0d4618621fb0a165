#include "compiler/codegen/region/ScanPlan.h"
#include "compiler/codegen/region/ElementEmitter.h"
#include "dialects/graph/ops/Scalar.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

ScanPlan::ScanPlan(FusedOp region)
    : op(*region.getBody().getOps<CumulativeOp>().begin()),
      rows(getExtents(op.getX())), extent(rows[op.getAxis()]) {
  rows.erase(rows.begin() + op.getAxis());
}

SmallVector<Value> ScanPlan::getIndices(OpBuilder &b, ValueRange row,
                                        Value step, Value extent) {
  Location loc = op.getLoc();
  if (op.getReverse())
    step = emitSub(b, loc, emitSub(b, loc, extent, step), emitIndex(b, loc, 1));
  SmallVector<Value> at(row);
  at.insert(at.begin() + op.getAxis(), step);
  return at;
}

Value ScanPlan::emitNeutral(OpBuilder &b, Location loc) {
  Type elementType = getElementTypeOrSelf(op.getResult());
  return ScalarEmitter(b, loc).constant(
      getScalarType(elementType), op.getKind() == ReduceKind::sum ? 0 : 1);
}

Value ScanPlan::emitCombine(OpBuilder &b, Location loc, Value lhs, Value rhs) {
  ScalarEmitter e(b, loc);
  bool isSum = op.getKind() == ReduceKind::sum;
  if (isa<FloatType>(lhs.getType()))
    return isSum ? e.add(lhs, rhs) : e.mul(lhs, rhs);
  return isSum ? e.emit<arith::AddIOp>(lhs, rhs)
               : e.emit<arith::MulIOp>(lhs, rhs);
}

} // namespace tcc::codegen
