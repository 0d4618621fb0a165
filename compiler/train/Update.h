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
  /// The gradient of the sum of the losses, of the parameter's type, divided by
  /// the nominal count and times the loss scale.
  mlir::Value gradient;
  const DividedBucket *bucket = nullptr; ///< null: a parameter
};

/// What an update is made of. Scalars are f64, and of all that the gradients
/// are the sum of.
struct Sums {
  llvm::ArrayRef<TrainedParameter> parameters;
  mlir::Value loss, count; ///< of targets
  int64_t nominalCount;    ///< of targets in one micro-batch
  /// The gradients of all parameters, where those of `parameters` are parts of
  /// them and each rank has the whole; empty otherwise.
  llvm::ArrayRef<mlir::Value> whole = {};
};

/// What a step tells: scalars of f64, whether it was skipped i1.
struct Metrics {
  mlir::Value loss, gradNorm;
  mlir::Value gradNorms; ///< as format::Metric::grad_norms, or null
  mlir::Value lr, lossScale, skipped;
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

/// Emits the schedule, the check, clipping and the update of all parameters.
/// Nothing but the step's state changes where the step is skipped.
Metrics emitUpdate(StepFunction &step, const Recipe &recipe, const Sums &sums);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_UPDATE_H
