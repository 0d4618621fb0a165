//===- Problems.h - Everything that is wrong with an input ------*- C++ -*-===//
#ifndef TCC_FRONTENDS_PROBLEMS_H
#define TCC_FRONTENDS_PROBLEMS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace llvm {
class raw_ostream;
}

namespace tcc {

/// What a problem makes the tool exit with: a runtime::Code.
enum class ProblemClass {
  usage = 2,       // a flag, an unbound dimension
  badBytes = 3,    // the file breaks its format
  unsupported = 4, // valid, but not implemented
  io = 5,          // a file is missing or unreadable
};

struct Problem {
  ProblemClass kind;
  std::string node; // the model's name of the node, or empty
  std::string op;   // the node's op, or empty
  std::string message;
  std::string file = ""; // that it is of; empty: the problems' own
};

/// Collects problems, so that all are reported at once.
class Problems {
public:
  explicit Problems(std::string file = "") : file(std::move(file)) {}

  void add(ProblemClass kind, std::string message);
  void add(Problem problem);

  bool empty() const { return problems.empty(); }
  llvm::ArrayRef<Problem> get() const { return problems; }

  /// The smallest class of all problems; 0 if there are none.
  int getExitCode() const;

  /// One line a problem: file: node 'n' (Op): message.
  void print(llvm::raw_ostream &stream) const;

private:
  std::string file;
  std::vector<Problem> problems;
};

} // namespace tcc

#endif // TCC_FRONTENDS_PROBLEMS_H
