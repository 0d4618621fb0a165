//===- Options.h - The command line of tcc ----------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCC_OPTIONS_H
#define TCC_TOOLS_TCC_OPTIONS_H

#include "tcc/compiler.h"
#include <optional>

namespace tcc::tools {

struct ToolOptions {
  CompileOptions compile;
  std::string dumpDecisions; ///< file for the decisions; empty: none
  /// A plugin to check instead of compiling a model; empty: none.
  std::string checkedPlugin;
  std::string reportFile; ///< page about all of it; empty: none
  bool json = false, quiet = false, verbose = false;
};

/// Fills `options`; returns an exit code if that ends the tool, as after
/// --help or a malformed flag.
std::optional<int> parseOptions(int argc, char **argv, ToolOptions &options);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCC_OPTIONS_H
