//===- ControlGradients.h - What gradients of regions share -----*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_OPS_CONTROLGRADIENTS_H
#define TCC_DIALECTS_GRAPH_OPS_CONTROLGRADIENTS_H

#include "dialects/graph/ops/TensorEmitter.h"

#include "mlir/IR/IRMapping.h"

namespace tcc::graph {

/// Clones the ops of `block` but its terminator to where `builder` is; gives
/// what it yields.
inline llvm::SmallVector<mlir::Value> cloneBody(mlir::OpBuilder &builder,
                                                mlir::Block &block,
                                                mlir::IRMapping &mapping) {
  for (mlir::Operation &op : block.without_terminator())
    builder.clone(op, mapping);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](mlir::Value value) { return mapping.lookupOrDefault(value); });
}

/// The captured values whose gradients are wanted.
inline llvm::SmallVector<mlir::Value>
getWantedCaptures(mlir::Operation *op, const Gradients &gradients) {
  llvm::SmallVector<mlir::Value> captures = getCaptures(op);
  llvm::erase_if(captures,
                 [&](mlir::Value value) { return !gradients.wants(value); });
  return captures;
}

/// `gradient`, or zeros like `value`.
inline mlir::Value orZeros(const TensorEmitter &emitter, mlir::Value gradient,
                           mlir::Value value) {
  return gradient ? gradient : emitter.splat(value, 0.0);
}

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_OPS_CONTROLGRADIENTS_H
