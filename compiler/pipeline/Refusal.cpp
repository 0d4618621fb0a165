#include "compiler/pipeline/Refusal.h"

#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/raw_ostream.h"

using tcc::runtime::Code;

namespace tcc {

static_assert(int(ProblemClass::usage) == int(Code::Usage) &&
              int(ProblemClass::badBytes) == int(Code::BadData) &&
              int(ProblemClass::unsupported) == int(Code::Unsupported) &&
              int(ProblemClass::io) == int(Code::Io));

Code getCode(const Problems &problems) {
  return problems.empty() ? Code::Internal : Code(problems.getExitCode());
}

Refusal makeRefusal(Code code, std::string problem) {
  return {code, {std::move(problem)}, {}};
}

Refusal makeRefusal(const runtime::Status &status) {
  return makeRefusal(status.code(), std::string(status.message()));
}

Refusal makeRefusal(const Problems &problems) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  problems.print(stream);
  llvm::SmallVector<llvm::StringRef> lines;
  llvm::StringRef(text).split(lines, '\n', -1, /*KeepEmpty=*/false);
  Refusal refusal;
  for (llvm::StringRef line : lines)
    refusal.problems.push_back(line.str());
  refusal.code = getCode(problems);
  return refusal;
}

} // namespace tcc
