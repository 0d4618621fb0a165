#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

/// What each rank has of the loss depends on every x_r: their gradient is the
/// sum of what the ranks have of it.
LogicalResult AllReduceOp::emitGradients(Gradients &gradients) {
  Value gradient = gradients.find(getResult());
  if (gradient && gradients.wants(getX()))
    gradients.add(getX(), gradients.getBuilder().create<AllReduceOp>(
                              getLoc(), gradient, getGroup()));
  return success();
}

#define GET_OP_CLASSES
#include "dialects/graph/Collective.cpp.inc"

void GraphDialect::addCollectiveOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Collective.cpp.inc"
      >();
}
