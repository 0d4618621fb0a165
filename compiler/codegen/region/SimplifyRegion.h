//===- SimplifyRegion.h - A fused region in its plainest form ---*- C++ -*-===//
//
// Code generation works on a private copy of a region in which composites are
// decomposed, views at the results are gone, and adjacent axes that are always
// walked together are one: buffers are row-major, so other extents of the same
// elements cost nothing, and long inner loops are what vectorises.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_SIMPLIFYREGION_H
#define TCC_COMPILER_CODEGEN_REGION_SIMPLIFYREGION_H

#include "dialects/graph/GraphOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tcc::codegen {

/// A simplified copy of `fused`. Inputs and results are the same in number and
/// order; their types may have other extents of the same elements.
mlir::FailureOr<mlir::OwningOpRef<graph::FusedOp>>
simplifyRegion(graph::FusedOp fused);

/// Decomposes composites of `body` that have no kernel of their own.
mlir::LogicalResult decomposeComposites(mlir::Block &body,
                                        graph::KernelKind kind);

/// Computes results in their own order where that transposes fewer tensors than
/// computing them in another one and transposing them.
void moveTransposes(mlir::Block &body);

/// Merges axes of the values of `body`; changes the types of its arguments.
void collapseAxes(mlir::Block &body);

/// `value` in the extents of `type`: itself, or a reshape before `b`.
mlir::Value reshapeTo(mlir::OpBuilder &b, mlir::Value value, mlir::Type type);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_SIMPLIFYREGION_H
