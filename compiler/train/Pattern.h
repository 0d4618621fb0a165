//===- Pattern.h - Which parameters a recipe means --------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_PATTERN_H
#define TCC_COMPILER_TRAIN_PATTERN_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <cstdint>
#include <string>
#include <vector>

namespace tcc::train {

/// What a pattern can ask of a parameter.
struct ParameterTraits {
  std::string name;
  int64_t rank = 0;
  /// What the parameter is to the op that reads it.
  bool isNorm = false, isBias = false, isEmbedding = false;
};

/// A glob over names: `*` is any characters, dots too, and `?` is one. Where
/// `selects` is set, the words "ndim<=1", "norm", "bias" and "embedding" are
/// selectors instead.
struct Pattern {
  std::string text;
  /// Where it stands in the recipe.
  int line = 0;
  bool selects = false;

  /// The words hold for a model or not: only globs are meant to match.
  bool isSelector() const;
  bool matches(const ParameterTraits &parameter) const;
};

using Patterns = std::vector<Pattern>;

/// True if one of `patterns` matches.
bool matchesAny(llvm::ArrayRef<Pattern> patterns,
                const ParameterTraits &parameter);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_PATTERN_H
