//===- Outline.h - Moves kernels into graph.fused ops -----------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_OUTLINE_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_OUTLINE_H

#include "compiler/passes/graph/fusion/Region.h"

namespace tcc::fusion {

/// A region of the partition, or an op that stays (`members` is only that one
/// and `region` is unset).
struct Step {
  mlir::SmallVector<mlir::Operation *, 4> members;
  mlir::SmallVector<mlir::Value, 2> results;
  std::optional<Region> region;
  graph::FusedOp fused; // set by outlineSteps
};

/// Rebuilds `block` as `steps`, which are in an order that respects their
/// reads. Values that are read elementwise get the shape of the kernel's
/// space, so that reshapes vanish from bodies; outside, views restore the
/// shapes that others expect.
void outlineSteps(mlir::Block &block, mlir::MutableArrayRef<Step> steps);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_OUTLINE_H
