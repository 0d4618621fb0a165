#include "dialects/exec/ExecOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::exec;

SmallVector<Value> IfOp::getReads() { return {getCondition()}; }
SmallVector<Value> IfOp::getWrites() { return {}; }

SmallVector<Value> LoopOp::getReads() {
  if (getCondition())
    return {getCondition()};
  return {};
}
SmallVector<Value> LoopOp::getWrites() { return {}; }
int64_t LoopOp::getSetSlot() { return getSlot(); }

LogicalResult LoopOp::verify() {
  if (getTrips() && !isSizeMap(*getTrips(), 1))
    return emitOpError("expected one number of trips");
  if (static_cast<int64_t>(getMaxTrips()) < 0)
    return emitOpError("expected a limit that is not negative");
  return success();
}

#define GET_OP_CLASSES
#include "dialects/exec/Control.cpp.inc"

void ExecDialect::addControlOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Control.cpp.inc"
      >();
}
