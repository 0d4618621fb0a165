//===- Refit.h - Replaces the weights of a package --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_REFIT_H
#define TCC_RUNTIME_EXECUTOR_REFIT_H

#include "runtime/executor/Executable.h"

namespace tcc::runtime {

/// What a replacement reads and changes.
struct RefitTarget {
  const Package &package;
  std::span<const format::KernelFunction> kernels;
  std::vector<const std::byte *> &constants; ///< as Program.weights
  std::vector<Memory> &replaced;             ///< owns the new constants
};

/// Replaces the constants that hold, or are computed from, the tensors of
/// `options.weightsFile`, and computes those that the package has not. A tensor
/// that is not in the file, or all if there is none, keeps its value, if the
/// package has it.
Status replaceWeights(const RefitTarget &target,
                      const ExecutableOptions &options);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_REFIT_H
