#include "frontends/Problems.h"

#include "llvm/Support/raw_ostream.h"
#include <algorithm>

namespace tcc {

void Problems::add(ProblemClass kind, std::string message) {
  add({kind, "", "", std::move(message)});
}

void Problems::add(Problem problem) { problems.push_back(std::move(problem)); }

int Problems::getExitCode() const {
  if (problems.empty())
    return 0;
  auto first = std::min_element(
      problems.begin(), problems.end(),
      [](const Problem &a, const Problem &b) { return a.kind < b.kind; });
  return static_cast<int>(first->kind);
}

void Problems::print(llvm::raw_ostream &stream) const {
  for (const Problem &problem : problems) {
    const std::string &of = problem.file.empty() ? file : problem.file;
    if (!of.empty())
      stream << of << ": ";
    if (!problem.op.empty())
      stream << "node '" << problem.node << "' (" << problem.op << "): ";
    stream << problem.message << '\n';
  }
}

} // namespace tcc
