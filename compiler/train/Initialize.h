//===- Initialize.h - First values of parameters ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_INITIALIZE_H
#define TCC_COMPILER_TRAIN_INITIALIZE_H

#include "compiler/train/Parameters.h"
#include "compiler/train/Recipe.h"
#include "compiler/train/Variables.h"

namespace tcc::train {

/// How the recipe begins a parameter, by [init] or `reinit`; null: with the
/// model's value. What the parameter has too few axes for is added to
/// `problems`.
Initial makeInitial(const Recipe &recipe, const ParameterTraits &parameter,
                    Problems &problems);

/// The value that the model came with; `row` outlives the result.
Initial makeModelValue(const Parameter &row);

/// `initial`, which gives values of `type`, for a variable of any float type.
Initial narrow(const Initial &initial, mlir::RankedTensorType type);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_INITIALIZE_H
