//===- Buckets.h - What ranks sum by one message ----------------*- C++ -*-===//
//
// Gradients that are ready one after the other lie side by side and are summed
// over the ranks together, while what comes before them in the model is still
// computed (Li et al., PyTorch Distributed, 2020).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_BUCKETS_H
#define TCC_COMPILER_TRAIN_BUCKETS_H

#include "compiler/train/Variables.h"
#include "frontends/Problems.h"

namespace tcc::train {

/// The names of variables, in order.
using Bucket = std::vector<std::string>;

/// Values for variables.
using NamedValues = llvm::StringMap<mlir::Value>;

/// The names of values of one block, in the order in which it computes them.
using NamedValue = std::pair<std::string, mlir::Value>;
std::vector<std::string> listByReadiness(llvm::ArrayRef<NamedValue> values);

/// Divides variables, in the order in which their values are ready, into
/// buckets of one element type and at most `bytes`, or one variable.
std::vector<Bucket> divideIntoBuckets(const VariableTable &table,
                                      llvm::ArrayRef<std::string> names,
                                      int64_t bytes);

/// Bytes of all variables of the bucket.
int64_t getBytes(const VariableTable &table, const Bucket &bucket);

/// Notes a decision about a bucket, of `bytes` by one message of an update.
void noteBucket(mlir::ModuleOp module, const Bucket &bucket, int64_t bytes,
                const char *what);

/// Whether ranks sum elements of a type, of which gradients are.
bool isSummed(mlir::Type element);

/// Adds what `module` sums over ranks and no rank can; `parts` is how many
/// ranks divide the update, 0 where none does.
void checkSums(mlir::ModuleOp module, int64_t parts, Problems &problems);

/// Its first variable and its last.
std::string describe(const Bucket &bucket);

/// Behind the last of the ops that compute the values.
void setInsertionPointAfter(mlir::OpBuilder &builder,
                            llvm::ArrayRef<mlir::Value> values);

/// Sums the `values` of the variables over all ranks, bucket by bucket, each as
/// soon as all of it is computed, and replaces them by the sums. These lie in
/// the variables, which the caller must write. `inTree`: that of a BatchTree.
void emitSums(StepFunction &step, llvm::ArrayRef<Bucket> buckets, bool inTree,
              NamedValues &values);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_BUCKETS_H
