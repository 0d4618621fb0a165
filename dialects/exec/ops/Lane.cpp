#include "dialects/exec/ExecOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::exec;

SmallVector<Value> RecordEventOp::getReads() { return {}; }
SmallVector<Value> RecordEventOp::getWrites() { return {}; }
bool RecordEventOp::isBarrier() { return true; }

SmallVector<Value> WaitEventOp::getReads() { return {}; }
SmallVector<Value> WaitEventOp::getWrites() { return {}; }
bool WaitEventOp::isBarrier() { return true; }

SmallVector<Value> AllReduceOp::getReads() { return {getBuffer()}; }
SmallVector<Value> AllReduceOp::getWrites() { return {getBuffer()}; }
// Ranks must agree on the order.
bool AllReduceOp::isBarrier() { return true; }

LogicalResult AllReduceOp::verify() {
  if (!isSizeMap(getCount(), 1))
    return emitOpError("expected one number of elements");
  return success();
}

#define GET_OP_CLASSES
#include "dialects/exec/Lane.cpp.inc"

void ExecDialect::addLaneOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Lane.cpp.inc"
      >();
}
