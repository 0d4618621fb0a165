//===- Loss.h - The loss of a training step ---------------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_LOSS_H
#define TCC_COMPILER_TRAIN_LOSS_H

#include "compiler/train/Keys.h"
#include "compiler/train/Settings.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace tcc::train {

/// What a loss compares, place by place.
struct Comparison {
  mlir::Value logits; ///< as the loss reads them; null where there is no target
  mlir::Value target; ///< likewise
  int64_t axis = 0;   ///< of classes, in the logits
  /// For classes, with the target's shape: whether each target counts, which
  /// one of a sample without weight does not, and -log of its probability.
  mlir::Value isCounted, surprise;
  /// The weight of each target, with the logits' element type; null: all are 1.
  mlir::Value weights;
};

struct Loss {
  /// Scalars of the logits' type: the sum of the losses, and how many there
  /// are; with mean_of_means the mean of a batch is one loss.
  mlir::Value total, count;
  /// How many targets are the largest logit, i64, for classes; else null.
  mlir::Value correct;
  /// The count where every target is valid.
  int64_t nominalCount = 1;
  Comparison compared = {};
};

/// What a loss compares the logits with.
enum class LossTarget {
  Classes, ///< one for each place, along axis 1
  Tokens,  ///< of a causal language model, along the last axis
  Shares,  ///< as the logits: how much of each place is of each class
  Values,  ///< as the logits
  Truths,  ///< as the logits, of which those above 0 say yes: 1 for yes, or 0
  None     ///< the model computes the loss
};

class LossEmitter;

/// All that tells one loss from others.
struct LossRule {
  Kind kind;
  LossTarget target;
  /// Beside those of LossRecipe; null: no other.
  void (*setDefaults)(LossRecipe &recipe) = nullptr;
  Loss (*emit)(LossEmitter &emitter, mlir::Value logits, mlir::Value target);
};

/// In the order of the documentation.
llvm::ArrayRef<LossRule> getLosses();

LossTarget getTarget(const LossRecipe &recipe);

/// Whether there are targets to compare with.
bool hasTarget(const LossRecipe &recipe);

/// The type of the targets that go with `logits`; null after adding to
/// `problems` why the loss does not take such logits. Classes are counted along
/// axis 1, those of a causal language model along the last axis. A loss that
/// the model computes has no targets: null without a problem.
mlir::RankedTensorType getTargetType(const LossRecipe &recipe,
                                     mlir::RankedTensorType logits,
                                     Problems &problems);

/// The axis that classes are counted along.
int64_t getClassAxis(const LossRecipe &recipe, mlir::RankedTensorType logits);

/// Whether the loss counts classes along axis 1 of logits that may be
/// [batch, position, class], as `places` is [batch, position].
bool mayMistakePositions(const LossRecipe &recipe,
                         mlir::RankedTensorType logits, mlir::Type places);

/// Which loss takes logits that were mistaken so.
inline constexpr const char *kLossOfPositions =
    "logits of [batch, position, class] take kind = 'causal_lm' with shift = "
    "false";

/// What a loss is computed of.
struct LossOperands {
  mlir::Value logits;
  mlir::Value target;  ///< of the type above, null where that is
  mlir::Value weights; ///< of the samples, [batch]; null: all are 1
};

/// Emits the loss. Losses and counts of a sample are multiplied by its weight.
Loss emitLoss(const Settings &settings, const LossRecipe &recipe,
              const LossOperands &operands);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_LOSS_H
