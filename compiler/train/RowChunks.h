//===- RowChunks.h - A wide value, some rows at a time ----------*- C++ -*-===//
//
// Logits may be the largest value of a training step by far, while what they
// are made of and what becomes of them is small. A loss is a sum over rows, so
// the loss and the gradients of some rows can be computed, and their logits
// forgotten, before those of the next.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_ROWCHUNKS_H
#define TCC_COMPILER_TRAIN_ROWCHUNKS_H

#include "compiler/train/Loss.h"
#include "dialects/graph/ops/TensorEmitter.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace tcc::train {

/// The ops that make a wide value of narrow ones: each of its rows, which are
/// counted along axis 0, of the same rows of `inputs` and of all of `shared`.
class RowTail {
public:
  /// Nothing if `wide` does not depend on its inputs so, or they are not much
  /// smaller.
  static std::optional<RowTail> find(mlir::Value wide);

  llvm::ArrayRef<mlir::Value> getInputs() const { return inputs.getArrayRef(); }
  llvm::ArrayRef<mlir::Value> getShared() const { return shared.getArrayRef(); }
  int64_t getRowCount() const;
  int64_t getChunkCount() const;
  /// The value's rows that are made of these ones of the inputs.
  mlir::Value emit(mlir::OpBuilder &builder,
                   llvm::ArrayRef<mlir::Value> inputRows,
                   llvm::ArrayRef<mlir::Value> sharedValues) const;

private:
  bool visit(mlir::Value value);

  mlir::Value wide;
  llvm::SetVector<mlir::Operation *> ops;
  llvm::SetVector<mlir::Value> inputs, shared;
};

/// A loss and from where to differentiate on.
struct LossGradients {
  Loss loss;
  llvm::SmallVector<mlir::Value> values, gradients; ///< one for each value
};

/// Emits the loss and its gradients, times `scale` over `nominalCount`, some
/// rows after the others. Fails, with errors, at ops without a derivative.
mlir::FailureOr<LossGradients>
emitInChunks(const Settings &settings, const LossRecipe &recipe,
             const LossOperands &operands, const RowTail &tail,
             mlir::Value scale, int64_t nominalCount);

/// `count` indices of x along `axis`.
mlir::Value emitSlice(const graph::TensorEmitter &emitter, mlir::Value x,
                      int64_t axis, int64_t start, int64_t count);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_ROWCHUNKS_H
