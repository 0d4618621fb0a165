//===- Batch.h - The largest batch that a budget holds ----------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_BATCH_H
#define TCC_COMPILER_PIPELINE_BATCH_H

#include "compiler/pipeline/Build.h"

namespace tcc {

/// A plan for a number of samples.
struct BatchTrial {
  enum Result { Fits, TooLarge, Fails };
  Result result = Fails;
  int64_t leastBytes = 0; ///< that it can need, about; 0: not known
};

struct BatchChoice {
  int64_t samples = 0; ///< 0: none was found
  std::string text;    ///< says that it is the largest
};

/// Samples that a pass may have at most where it is searched.
constexpr int64_t kMostSamples = 1 << 16;

/// What may be tried, ascending: the divisors of the samples of an update, if
/// these are given.
std::vector<int64_t> getBatches(std::optional<int64_t> global);

/// The largest of `batches` for which `attempt` fits, the next one being too
/// large. What batches need grows about evenly, so few are tried: where a line
/// through known ones meets `budget`. Ends where an attempt fails.
BatchChoice findLargestBatch(llvm::ArrayRef<int64_t> batches, int64_t budget,
                             llvm::function_ref<BatchTrial(int64_t)> attempt);

/// Builds the program of `variant`, whose recipe was read from `recipeFile`,
/// with the most samples that its budget holds. The model's batch is open.
BuildResult buildLargestBatch(const Model &model, const Variant &variant,
                              const std::string &recipeFile);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_BATCH_H
