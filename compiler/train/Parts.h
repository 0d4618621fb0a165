//===- Parts.h - What of an update is a rank's own --------------*- C++ -*-===//
//
// Ranks divide the state of the optimizer and the update (Rajbhandari et al.,
// ZeRO, 2020, stage 1): of parameters that lie side by side, as their gradients
// do, rank r of N gets the sums of the r-th part of the gradients, has the
// slots of that part alone, updates it, and all gather the parameters.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_PARTS_H
#define TCC_COMPILER_TRAIN_PARTS_H

#include "compiler/train/Buckets.h"
#include "compiler/train/Recipe.h"

namespace tcc::train {

/// Parameters that the update treats alike, and lie side by side; one part of
/// them for each rank. The first element of each, of a gradient as of a
/// parameter, is at a multiple of kTensorAlignment, and so are the parts.
struct DividedBucket {
  std::string name; ///< for the names of slots
  /// Traits of the first parameter: group and decay are those of all.
  ParameterTraits traits;
  Bucket parameters, gradients;
  llvm::SmallVector<int64_t> begins; ///< of each, in elements
  /// One rank's part of the parameters as they are stored, and of gradients and
  /// slots.
  mlir::RankedTensorType stored, type;
};

/// A parameter that is trained, and the variable of its gradient.
struct DividedParameter {
  ParameterTraits traits;
  std::string gradient;
};

/// Divides parameters, in the order in which their gradients are ready, into
/// buckets whose gradients have at most `recipe.parallel.bucket` bytes, or are
/// those of one parameter.
std::vector<DividedBucket>
divideAmongRanks(const VariableTable &table, const Recipe &recipe,
                 llvm::ArrayRef<DividedParameter> parameters);

/// Moves parameters and gradients to where they lie side by side. Buckets of
/// variables are numbered from `number` on.
void placeDivided(VariableTable &table, llvm::ArrayRef<DividedBucket> buckets,
                  int64_t ranks, int64_t number);

/// Declares one rank's part of a slot or of the running means.
void declarePart(VariableTable &table, const DividedBucket &bucket,
                 llvm::StringRef slot, graph::VariableKind kind);

/// This rank's part of the sums of the gradients in `values`, which lies in
/// their variables: the caller must write these.
mlir::Value emitSumOfPart(StepFunction &step, const DividedBucket &bucket,
                          const NamedValues &values);

/// This rank's part of the gradients in `sums`, of which each rank has all, and
/// which lie in their variables.
mlir::Value emitPartOfSums(StepFunction &step, const DividedBucket &bucket,
                           const NamedValues &sums);

/// This rank's part of the parameters as the step was given them.
mlir::Value emitPart(StepFunction &step, const DividedBucket &bucket);

/// Writes the parameters, of which each rank has computed its part.
void emitGather(StepFunction &step, const DividedBucket &bucket,
                mlir::Value part);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_PARTS_H
