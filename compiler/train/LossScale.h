//===- LossScale.h - The factor of the loss in training ---------*- C++ -*-===//
//
// Gradients are those of the loss times a factor, so that floats of few
// exponents hold them; the update divides by it. The setting `loss_scale` gives
// the factor. Where that is 0, `dynamic`, the factor follows the gradients as
// torch.amp.GradScaler's does, in two variables that `apply` and `train_step`
// alone write: the step's loss_scale, and growth_count, the updates that were
// applied since it changed. It is the same for all batches of an update.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_LOSSSCALE_H
#define TCC_COMPILER_TRAIN_LOSSSCALE_H

#include "compiler/train/Settings.h"

namespace tcc::train {

/// The settings are declared before.
void declareLossScale(VariableTable &table);

class LossScale {
public:
  LossScale(StepFunction &step, const Settings &settings,
            const graph::TensorEmitter &emitter);

  /// The factor of this step, f64; whether it follows the gradients, i1.
  graph::Expr get() const { return factor; }
  graph::Expr isDynamic() const { return dynamic; }
  /// Whether the factor cannot become smaller, i1: what overflows now does so
  /// at any scale.
  graph::Expr isExhausted();

  /// The factor of the next update, after one that was applied, one with a
  /// gradient that is not finite, or neither.
  void advance(graph::Expr isApplied, graph::Expr hasOverflow);

private:
  graph::Expr read(StepField field) const {
    return {step.read(field), &emitter};
  }

  StepFunction &step;
  const graph::TensorEmitter &emitter;
  graph::Expr dynamic, factor;
};

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_LOSSSCALE_H
