//===- CommandLine.h - Parsing shared by the tools --------------*- C++ -*-===//
#ifndef TCC_TOOLS_CLI_COMMANDLINE_H
#define TCC_TOOLS_CLI_COMMANDLINE_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
}

namespace tcc::tools {

/// The exit code of wrong flags or arguments.
inline constexpr int kUsageError = 2;

/// Parses the arguments. Returns an exit code if the tool is done: help was
/// printed (0), or the arguments are wrong and a line on stderr says why (2);
/// an unknown flag comes with the nearest known one. What fails for another
/// reason, while a flag is taken, throws a CLI::RuntimeError with its code.
std::optional<int> parseCommandLine(CLI::App &app, int argc, char **argv);

} // namespace tcc::tools

#endif // TCC_TOOLS_CLI_COMMANDLINE_H
