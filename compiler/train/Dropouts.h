//===- Dropouts.h - What a model drops in training --------------*- C++ -*-===//
//
// The mask of a dropout is a function of the step's seed, the number of the
// batch among all that are trained on (MicroBatches.h), the op's key and the
// place of the element: the backward pass reads it or computes it again, as
// fusion finds cheaper, and a session that resumes goes on with the masks that
// come next.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_DROPOUTS_H
#define TCC_COMPILER_TRAIN_DROPOUTS_H

#include "compiler/train/Recipe.h"
#include "compiler/train/Variables.h"

namespace tcc::train {

/// Dropouts of one name and one probability.
struct DropoutSite {
  std::string name;
  double p;
  bool isOfRecipe = false;
};

/// One line for the user.
std::string describe(const DropoutSite &site);

/// The sites of `main` in order, with the probabilities of the recipe. Where
/// dropouts of one name have several, the later ones get names of their own.
/// What cannot be trained and patterns without a site are added to `problems`.
std::vector<DropoutSite> findDropouts(mlir::func::FuncOp main,
                                      const Recipe &recipe, Problems &problems);

/// Declares a setting for each site.
void declareDropouts(VariableTable &table, llvm::ArrayRef<DropoutSite> sites);

/// Puts masks in the place of the dropouts in `step`, a pass over one batch.
void applyDropouts(StepFunction &step, const Recipe &recipe);

/// Erases the dropouts of `step`, which is no training.
void eraseDropouts(StepFunction &step);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_DROPOUTS_H
