//===- BuildSteps.h - The entry points of training --------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_BUILDSTEPS_H
#define TCC_COMPILER_TRAIN_BUILDSTEPS_H

#include "compiler/train/Parameters.h"
#include "mlir/Support/LLVM.h"

namespace tcc::train {

/// Replaces @main of `module`, a model that recognition has been over, by the
/// entry points of a training package: @init, @train_step, @accumulate_step,
/// @apply, @eval and @predict, which share the variables that it declares.
/// Returns what is trained and dropped, in lines for the user. Fails after
/// adding to `problems`, or with errors at ops that have no derivative.
mlir::FailureOr<std::vector<std::string>> buildSteps(mlir::ModuleOp module,
                                                     const WeightStore &weights,
                                                     const Recipe &recipe,
                                                     Problems &problems);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_BUILDSTEPS_H
