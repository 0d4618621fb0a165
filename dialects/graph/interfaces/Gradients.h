//===- Gradients.h - Reverse-mode differentiation ---------------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_INTERFACES_GRADIENTS_H
#define TCC_DIALECTS_GRAPH_INTERFACES_GRADIENTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace tcc::graph {

/// The gradients of one scalar with respect to the values of a block, while
/// they are made: results have theirs before the ops that make them are asked
/// for those of their operands.
class Gradients {
public:
  /// Ops are emitted with `builder`. `active` are the values that the scalar's
  /// gradient flows through.
  Gradients(mlir::OpBuilder &builder, llvm::DenseSet<mlir::Value> active)
      : builder(builder), active(std::move(active)) {}

  mlir::OpBuilder &getBuilder() { return builder; }
  /// True if a gradient with respect to `value` is of use.
  bool wants(mlir::Value value) const { return active.contains(value); }
  /// The gradient with respect to `value`, which is of its type; null if it is
  /// zero.
  mlir::Value find(mlir::Value value) const { return gradients.lookup(value); }
  /// The same; zeros are emitted.
  mlir::Value get(mlir::Value value);
  /// Adds a part of the gradient with respect to `value`; nothing if it is not
  /// wanted or `part` is null.
  void add(mlir::Value value, mlir::Value part);
  /// `other` is used instead of `value` and takes its gradient.
  void replace(mlir::Value value, mlir::Value other);

private:
  mlir::OpBuilder &builder;
  llvm::DenseSet<mlir::Value> active;
  llvm::DenseMap<mlir::Value, mlir::Value> gradients;
};

/// Emits with `builder`, which is at the end of a block, the gradients of
/// sum_i <results[i], seeds[i]> with respect to `inputs`. The results are
/// values of that block; the inputs, too, or from outside. `gradients[i]` is
/// null where the results do not depend on inputs[i]. Fails, with an error at
/// each of them, if there are ops between that have no derivative.
mlir::LogicalResult
differentiate(mlir::OpBuilder &builder, mlir::ValueRange results,
              mlir::ValueRange seeds, mlir::ValueRange inputs,
              llvm::SmallVectorImpl<mlir::Value> &gradients);

/// The values from outside that the regions of `op` read, in order of first
/// use.
llvm::SmallVector<mlir::Value> getCaptures(mlir::Operation *op);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_INTERFACES_GRADIENTS_H
