#include "dialects/exec/ExecOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::exec;

#define GET_OP_CLASSES
#include "dialects/exec/Collective.cpp.inc"

void ExecDialect::addCollectiveOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/exec/Collective.cpp.inc"
      >();
}
