//===- Update.h - From gradients to new parameters --------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_UPDATE_H
#define TCC_COMPILER_TRAIN_UPDATE_H

#include "compiler/train/Parts.h"
#include "compiler/train/Variables.h"

namespace tcc::train {

struct TrainedType {
  ParameterTraits traits;
  mlir::RankedTensorType type;
};

/// A parameter, or this rank's part of several.
struct TrainedParameter {
  ParameterTraits traits; ///< those of the bucket where there is one
  /// Of the parameter's type: the gradient of the sum of the losses, divided by
  /// the nominal count and times the loss scale.
  mlir::Value gradient;
  const DividedBucket *bucket = nullptr; ///< null: a parameter
};

/// What a step tells: scalars of f64, whether it was skipped i1.
struct Metrics {
  mlir::Value loss, gradNorm, lr, lossScale, skipped;
  /// Whether buffers keep their values, too: as skipped, but false where the
  /// scale of the loss alone was too large.
  mlir::Value isVoid;
};

/// Declares the slots of the optimizer for these parameters, the settings and
/// whatever else the update keeps. Parameters are declared by the caller, as
/// are the step's iteration, updates, fault and seed, and its batches
/// (MicroBatches.h).
void declareUpdate(VariableTable &table, const Recipe &recipe,
                   llvm::ArrayRef<TrainedType> trained);

/// Declares the slots of the optimizer for one rank's part of the parameters.
void declareSlots(VariableTable &table, const Recipe &recipe,
                  const DividedBucket &bucket);

/// Emits the schedule, the check, clipping and the update of all parameters;
/// `lossTotal` and `count` are f64 scalars over what the gradients are the sum
/// of, with `nominalCount` of one micro-batch. Nothing but the step's state
/// changes where the step is skipped.
Metrics emitUpdate(StepFunction &step, const Recipe &recipe,
                   llvm::ArrayRef<TrainedParameter> parameters,
                   mlir::Value lossTotal, mlir::Value count,
                   int64_t nominalCount);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_UPDATE_H
