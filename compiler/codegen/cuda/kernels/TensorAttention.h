//===- TensorAttention.h - Attention and its gradients ----------*- C++ -*-===//
//
// On tensor cores, of matrices of f16 or bf16. A block has some rows of one
// matrix of the scores' product and walks over those of the other: what it
// makes of the scores goes from one product to the next in registers, and
// nothing else is stored but the result.
//
//   result      w v, with a running maximum and sum
//   normalizer  the logarithm of that sum
//   query       s k     with s = w * (dy v^T - share) * scale
//   key         s^T q
//   value       w^T dy
//   mask        s before the scale, of one tile of rows and of those walked
//   over;
//               what is walked over is the batch, where its scores read the
//               mask
//
// A kernel of all gradients has blocks of queries, and blocks of keys that make
// key and value both. No block adds to what another one makes.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_TENSORATTENTION_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_TENSORATTENTION_H

#include "compiler/codegen/cuda/kernels/WarpProduct.h"

namespace tcc::cuda {

/// Rows that a block walks over at a time.
inline constexpr int64_t kSteps = 32;

enum class Goal { result, normalizer, query, key, value, keyAndValue, mask };

/// A factor of which rows are walked over.
struct Matrix {
  Value tensor;
  mlir::AffineExpr columns;

  explicit operator bool() const { return bool(tensor); }
  int64_t getPadded() const {
    return llvm::alignTo(*graph::getConstant(columns), kFragmentSteps);
  }
  /// Pitch of rows in shared memory: eight rows' words are in different banks.
  int64_t getPitch() const { return getPadded() + 8; }
};

struct TensorPlan {
  graph::AttentionOpInterface op;
  Goal goal = Goal::result;
  graph::Extents batch; // axes
  mlir::AffineExpr own, walked;
  /// Factors of scores and of their slopes dy v^T, and what slopes and weights
  /// are multiplied with; null if there is none.
  Matrix ownScores, walkedScores, ownSlopes, walkedSlopes, bySlopes, byWeights;
  Value normalizer, share; // null if they are not read
  bool guard = false;
  bool isCausal; // a query sees keys up to its own index; no mask is read
  mlir::Type narrow;
  int64_t warps;

  TensorPlan(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols,
             Goal goal);
  bool ownsKeys() const {
    return goal == Goal::key || goal == Goal::value ||
           goal == Goal::keyAndValue;
  }
  bool runs() const { return goal == Goal::result || goal == Goal::normalizer; }
  int64_t getThreads() const { return warps * kWarp; }
  int64_t getRows() const { return warps * kFragmentRows; }
  mlir::AffineExpr countTiles() const { return own.ceilDiv(getRows()); }
  /// How many blocks a mask's gradient has: along the mask's batch axes, the
  /// sums, the tiles of rows and those of columns.
  graph::Extents getMaskBlocks();
  /// How many scores read an element of the mask, along each batch axis.
  graph::Extents getMaskRepeats();
};

/// What the blocks of a kernel make: those of one batch index take turns.
llvm::SmallVector<Goal> getGoals(graph::FusedOp region);

mlir::FailureOr<LaunchPlan>
planTensorAttention(graph::FusedOp region,
                    llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitTensorAttention(KernelBuilder &b, DeviceFrame &frame);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_TENSORATTENTION_H
