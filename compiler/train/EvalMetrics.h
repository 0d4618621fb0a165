//===- EvalMetrics.h - What evaluations measure -----------------*- C++ -*-===//
//
// Metrics are of all batches of an evaluation together, so that `eval` gives
// sums of which they follow (format::MetricRule). Precision, recall and F1 are
// scikit-learn's with average="macro" and zero_division=0.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_EVALMETRICS_H
#define TCC_COMPILER_TRAIN_EVALMETRICS_H

#include "compiler/train/CheckRecipe.h"
#include "compiler/train/Loss.h"
#include "compiler/train/Variables.h"

namespace tcc::train {

/// A table of all pairs of classes has at most as many classes.
inline constexpr int64_t kMostClassesOfTable = 256;

/// Adds what is wrong with `[eval]`.
void checkEvaluation(Reading &reading);

/// Adds the outputs of `eval`: the loss, its count, and the sums that the
/// metrics need. Sets the attributes of the module that describe them, when
/// runs evaluate and what they do where the loss jumps. Adds to `problems`
/// metrics which the model has not enough classes for, or too many.
void emitMetrics(StepFunction &step, mlir::ModuleOp module,
                 const Recipe &recipe, const Loss &loss, Problems &problems);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_EVALMETRICS_H
