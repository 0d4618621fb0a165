//===- Optimizer.h - One parameter's update ---------------------*- C++ -*-===//
//
// As PyTorch's implementations for single tensors, in their order of
// operations: factors are computed in f64, elements in the parameter's type.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_OPTIMIZER_H
#define TCC_COMPILER_TRAIN_OPTIMIZER_H

#include "compiler/train/Keys.h"
#include "compiler/train/Schedule.h"

namespace tcc::train {

/// The group of a parameter, or nullopt.
std::optional<size_t> findGroup(const OptimizerRecipe &recipe,
                                const ParameterTraits &parameter);

/// Factors of the parameters of a group: scalars of f64.
struct Factors {
  graph::Expr lr, weightDecay;
  /// Sgd's momentum, or betas.
  graph::Expr first, second;
  /// Bias corrections of adam: 1 - beta ^ (number of the update).
  graph::Expr firstCorrection, secondCorrection;
};

/// `updates` is the number of updates before this one.
Factors emitFactors(const Settings &settings, const Recipe &recipe,
                    std::optional<size_t> group, const Rates &rates,
                    graph::Expr updates);

/// Tensors of one type.
struct Stepped {
  graph::Expr parameter;
  /// In the order of getSlots.
  llvm::SmallVector<graph::Expr, 2> slots;
};

/// All that tells one optimizer from others. Its Factors are betas if it has
/// these, else a momentum.
struct OptimizerRule {
  Kind kind;
  /// Beside those of OptimizerRecipe; null: no other.
  void (*setDefaults)(OptimizerRecipe &recipe) = nullptr;
  bool correctsBias = false; ///< Factors have the corrections
  /// What it keeps for each parameter, zeros at first.
  llvm::SmallVector<llvm::StringRef> (*getSlots)(const Recipe &recipe);
  /// The parameter and its slots after an update with `gradient`.
  Stepped (*emit)(const OptimizerRecipe &recipe, const Factors &factors,
                  const Stepped &old, graph::Expr gradient, bool decays);
};

/// In the order of the documentation.
llvm::ArrayRef<OptimizerRule> getOptimizers();
const OptimizerRule &getRule(const OptimizerRecipe &recipe);

/// The scalar of f64 `factor` as all elements of a tensor like x.
graph::Expr spread(graph::Expr factor, graph::Expr x);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_OPTIMIZER_H
