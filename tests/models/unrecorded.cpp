//===- tcc-unrecorded: tcc without the log of decisions -------------------===//
//
// Takes the flags of tcc. What it writes has to be what tcc writes, but for the
// log.
//
//===----------------------------------------------------------------------===//
#include "tools/tcc/Options.h"

#include <cstdio>

int main(int argc, char **argv) {
  tcc::tools::ToolOptions options;
  if (std::optional<int> code = tcc::tools::parseOptions(argc, argv, options))
    return *code;
  options.compile.recordsDecisions = false;
  tcc::CompileReport report = tcc::compile(options.compile);
  for (const std::string &problem : report.problems)
    std::fprintf(stderr, "tcc-unrecorded: %s\n", problem.c_str());
  return report.exitCode;
}
