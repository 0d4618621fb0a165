//===- Members.h - Ops that become parts of kernels -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_MEMBERS_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_MEMBERS_H

#include "dialects/graph/GraphOps.h"

namespace tcc::fusion {

/// True for a reshape: it costs nothing between kernels.
bool isView(mlir::Operation *op);

/// What `value` is a view of, through any number of reshapes.
mlir::Value getSource(mlir::Value value);

/// The element of a constant whose elements are all the same.
mlir::Attribute getSplat(mlir::Value value);

/// If `op` is a result that a kernel of `kind` stores moved: which axis of its
/// own its operand's axes are, a permutation that keeps the last one. Its
/// operand is then read where the loops are.
mlir::AffineMap getStoreMap(mlir::Operation *op, graph::KernelKind kind);

/// True if `op` becomes part of a kernel.
bool isFusible(mlir::Operation *op);

/// True if `op` reads several tensors that do not just repeat elements.
bool combinesTensors(mlir::Operation *op);

/// True for an op that only says with which strides its operand is read.
bool isStrided(mlir::Operation *op);

/// The ops of a kernel's body that compute, and what they compute for it:
/// whatever is yielded is a view of that.
struct Body {
  mlir::SmallVector<mlir::Operation *> members;
  mlir::SmallVector<mlir::Value> results;
};
Body getBody(graph::FusedOp fused);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_MEMBERS_H
