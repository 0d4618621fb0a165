//===- BatchNorms.h - Batch norms that follow the batch ---------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_BATCHNORMS_H
#define TCC_COMPILER_TRAIN_BATCHNORMS_H

#include "dialects/graph/GraphOps.h"
#include "frontends/Problems.h"

namespace tcc::train {

/// A running statistic and its value after a step.
struct StatisticUpdate {
  mlir::Value running, next;
};

/// Gives the batch norms of `body` that `isTrained` chooses the mean and the
/// biased variance of their batch; what they had is updated with the mean and
/// the unbiased variance, as in PyTorch. Batches of one element a channel are
/// refused. With `world`, the number of ranks as a scalar, the batch is that of
/// all ranks together.
std::vector<StatisticUpdate>
trainBatchNorms(mlir::Block &body,
                llvm::function_ref<bool(graph::BatchNormOp)> isTrained,
                mlir::Value world, Problems &problems);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_BATCHNORMS_H
