//===- BuildSteps.h - The entry points of training --------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_BUILDSTEPS_H
#define TCC_COMPILER_TRAIN_BUILDSTEPS_H

#include "compiler/train/Parameters.h"
#include "mlir/Support/LLVM.h"

namespace tcc::train {

struct Steps {
  std::vector<std::string> lines; ///< what is trained and dropped, for the user
  /// Logits are wide and can be computed in chunks.
  bool hasChunks = false;
  std::vector<std::string> notes; ///< what is worth knowing
};

/// Replaces @main of `module`, a model that recognition has been over, by the
/// entry points of a training package: @init, @train_step, @accumulate_step,
/// @apply, @eval and @predict, which share the variables that it declares;
/// where there may be several ranks also by @reduce_step and @reduce_apply. A
/// recipe that does not ask for them gets them where their sums are supported.
/// With `parallel.exact` @accumulate_step and @reduce_apply update by any
/// number of ranks, and no others do. Fails after adding to `problems`, or with
/// errors at ops that have no derivative. With `inChunks` steps that train
/// compute wide logits, their loss and its gradients some rows at a time.
mlir::FailureOr<Steps> buildSteps(mlir::ModuleOp module,
                                  const WeightStore &weights,
                                  const Recipe &recipe, bool inChunks,
                                  Problems &problems);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_BUILDSTEPS_H
