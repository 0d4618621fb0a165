//===- Settings.h - Run-time values of a recipe -----------------*- C++ -*-===//
//
// What `--set` changes: a variable for each, numbers as f64 scalars, integers,
// booleans and the positions of words as i64 scalars, betas as two f64; with
// the range and words that it may be (graph::SettingAttr).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TRAIN_SETTINGS_H
#define TCC_COMPILER_TRAIN_SETTINGS_H

#include "compiler/train/Recipe.h"
#include "compiler/train/Variables.h"
#include "dialects/graph/ops/TensorEmitter.h"

namespace tcc::train {

struct Range;

/// Some variable is declared before.
void declareSettings(VariableTable &table, const Recipe &recipe);
/// One that is a number.
void declareSetting(VariableTable &table, llvm::StringRef key, double value,
                    const Range &range);
/// The seed of all random numbers: a field of the step that can be set.
void declareSeed(VariableTable &table, int64_t value, mlir::Builder builder);

/// The settings as a step reads them: scalars of f64.
class Settings {
public:
  Settings(StepFunction &step, const graph::TensorEmitter &emitter)
      : step(step), emitter(emitter) {}

  const graph::TensorEmitter &getEmitter() const { return emitter; }
  graph::Expr get(llvm::StringRef key) const;
  /// Element `index` of betas.
  graph::Expr get(llvm::StringRef key, int64_t index) const;
  /// Whether the key has this word; i1.
  template <typename Enum>
  graph::Expr is(llvm::StringRef key, Enum word) const {
    return isPosition(key, int64_t(word));
  }

private:
  graph::Expr isPosition(llvm::StringRef key, int64_t position) const;

  StepFunction &step;
  const graph::TensorEmitter &emitter;
};

/// The integer scalar `count` as f64.
graph::Expr toNumber(const graph::TensorEmitter &emitter, mlir::Value count);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_SETTINGS_H
