//===- BatchTree.h - Batches added up in one binary tree --------*- C++ -*-===//
//
// With `parallel.exact` the batches of an update are added up in one tree
// (runtime/package/BatchTree.h). A rank takes the leaves of its subtree one
// after the other and keeps, as a binary counter does, one sum for each level:
// of the last 2^level batches that are a subtree. What was added last lies
// where gradients, loss and count do without such a tree, and is the sum of the
// subtree once all its batches were taken; the sums of level 1 and above are
// variables of their own.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_BATCHTREE_H
#define TCC_COMPILER_TRAIN_BATCHTREE_H

#include "compiler/train/Variables.h"
#include "dialects/graph/ops/TensorEmitter.h"

namespace tcc::train {

/// Says in `module` that an update adds up the variables `names` in a tree, and
/// declares their partial sums; returns what it costs, for the user.
std::string declareBatchTree(mlir::ModuleOp module, VariableTable &table,
                             llvm::ArrayRef<std::string> names, int64_t leaves);

/// The tree of `leaves` in a step that takes a batch: its leaf is the number of
/// batches that the rank took for this update, before `place` is written.
class BatchTree {
public:
  /// `emitter` outlives it.
  BatchTree(StepFunction &step, const graph::TensorEmitter &emitter,
            int64_t leaves);

  /// The place of the leaf among those of rank 0, an i64 scalar.
  graph::Expr getPlace() const;
  /// Adds `value` of the batch to the variable and its partial sums.
  void add(llvm::StringRef name, mlir::Value value);

private:
  StepFunction &step;
  const graph::TensorEmitter &emitter;
  graph::Expr leaf;
  llvm::SmallVector<mlir::Value> bits; ///< of the leaf, the lowest first: i1
};

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_BATCHTREE_H
