#include "dialects/graph/GraphOps.h"

using namespace mlir;
using namespace tcc::graph;

Extents tcc::graph::deriveLoopExtents(Operation *op) {
  auto iteration = cast<IterationOpInterface>(op);
  Extents extents(iteration.getLoopKinds().size(),
                  getAffineConstantExpr(1, op->getContext()));
  auto visit = [&](AffineMap map, Value tensor) {
    if (!map)
      return;
    for (auto [axis, index] : llvm::enumerate(map.getResults()))
      if (auto loop = dyn_cast<AffineDimExpr>(index))
        extents[loop.getPosition()] = getExtent(tensor, axis);
  };
  for (auto [i, operand] : llvm::enumerate(op->getOperands()))
    visit(iteration.getOperandMap(i), operand);
  for (auto [i, result] : llvm::enumerate(op->getResults()))
    visit(iteration.getResultMap(i), result);
  return extents;
}
