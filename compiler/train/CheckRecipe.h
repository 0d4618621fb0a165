//===- CheckRecipe.h - Whether keys go together -----------------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_CHECKRECIPE_H
#define TCC_COMPILER_TRAIN_CHECKRECIPE_H

#include "compiler/train/Recipe.h"
#include "llvm/ADT/StringMap.h"

namespace tcc::train {

/// A recipe while it is read, with what is wrong with it.
struct Reading {
  struct Finding {
    int line;
    ProblemClass kind;
    std::string message;
  };

  Recipe recipe;
  /// The lines of the keys that were given.
  llvm::StringMap<int> lines;
  std::vector<Finding> findings;

  bool has(llvm::StringRef key) const { return lines.contains(key); }
  /// The line of a key, or else of another one of its table, or else the first.
  int getLine(llvm::StringRef key) const;
  /// The recipe is wrong; it asks for what does not exist.
  void fail(int line, std::string message) {
    findings.push_back({line, ProblemClass::badBytes, std::move(message)});
  }
  /// Each value is right, but together they do not say what to make: exit 2.
  void misuse(int line, std::string message) {
    findings.push_back({line, ProblemClass::usage, std::move(message)});
  }
  void refuse(int line, std::string message) {
    findings.push_back({line, ProblemClass::unsupported, std::move(message)});
  }
  /// Adds the findings in order of lines.
  void report(llvm::StringRef file, Problems &problems);
};

/// Finds keys that are missing, or that do not go together, and fills in what
/// follows from others.
void checkRecipe(Reading &reading);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_CHECKRECIPE_H
