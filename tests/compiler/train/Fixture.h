//===- Fixture.h - An update, evaluated -------------------------*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_TRAIN_FIXTURE_H
#define TCC_TESTS_COMPILER_TRAIN_FIXTURE_H

#include "compiler/train/Update.h"
#include "dialects/graph/evaluate/Evaluator.h"

#include <map>

namespace tcc::train {

using Values = std::vector<double>;

/// A training program of a recipe: @init, and @apply from given gradients,
/// count and sum of losses, in f64 unless the parameters' type says otherwise.
class UpdateProgram {
public:
  struct Parameter {
    ParameterTraits traits;
    std::vector<int64_t> shape;
    Values values;
  };

  UpdateProgram(const std::string &recipe, std::vector<Parameter> parameters);

  /// Runs @apply; `gradients` are in the order of the parameters.
  void apply(const std::vector<Values> &gradients, double count = 4,
             double lossTotal = 4);

  /// The outputs of the last call of apply.
  double getMetric(const std::string &name) const { return metrics.at(name); }
  /// The values of a variable.
  const Values &get(const std::string &name) const { return state.at(name); }
  void set(const std::string &name, Values values);
  bool has(const std::string &name) const { return state.count(name); }
  const Variable &describe(const std::string &name) { return table.get(name); }
  /// What the setting may be.
  std::string describeSetting(const std::string &key);

  /// The nominal count of targets.
  static constexpr int64_t kNominal = 4;

private:
  void declare();
  void build();
  void call(llvm::StringRef name, const std::vector<Values> &inputs);

  mlir::MLIRContext context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  Recipe recipe;
  std::vector<Parameter> parameters;
  VariableTable table;
  std::map<std::string, Values> state;
  std::map<std::string, double> metrics;
};

/// `recipe`, which must be right.
Recipe parseRecipe(const std::string &text);

} // namespace tcc::train

#endif // TCC_TESTS_COMPILER_TRAIN_FIXTURE_H
