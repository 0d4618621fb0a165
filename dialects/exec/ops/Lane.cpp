#include "dialects/exec/ExecOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::exec;

bool TokenOpInterface::joinsLanes() {
  return llvm::any_of(getToken().getUsers(), [](Operation *user) {
    return cast<WaitOp>(user).joinsLanes();
  });
}

SmallVector<Value> RecordEventOp::getReads() { return {}; }
SmallVector<Value> RecordEventOp::getWrites() { return {}; }
bool RecordEventOp::isStart() { return false; }

SmallVector<Value> WaitOp::getReads() { return {}; }
SmallVector<Value> WaitOp::getWrites() { return {}; }
bool WaitOp::joinsLanes() {
  return cast<CommandOpInterface>(*getMarked()).getLane() != getLane();
}

#define GET_OP_CLASSES
#include "dialects/exec/Lane.cpp.inc"

void ExecDialect::addLaneOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Lane.cpp.inc"
      >();
}
