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

std::optional<SmallVector<int64_t>> tcc::graph::getReducedAxes(Operation *op) {
  auto iteration = dyn_cast<IterationOpInterface>(op);
  if (!iteration || !isa<KernelOpInterface>(op))
    return std::nullopt;
  AffineMap map = iteration.getOperandMap(0);
  if (!map || !map.isIdentity())
    return std::nullopt;
  SmallVector<int64_t> axes;
  for (auto [loop, kind] : llvm::enumerate(iteration.getLoopKinds()))
    if (kind == utils::IteratorType::reduction)
      axes.push_back(loop);
  return axes;
}

bool tcc::graph::isOnePerRow(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel || kernel.getKernelKind() != KernelKind::row ||
      !getReducedAxes(op))
    return false;
  auto iteration = cast<IterationOpInterface>(op);
  return iteration.getResultMap(0).getNumResults() !=
         iteration.getLoopKinds().size();
}
