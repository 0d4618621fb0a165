//===- Command.h - Compares a package with its model ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCCOMPARE_COMMAND_H
#define TCC_TOOLS_TCCCOMPARE_COMMAND_H

namespace tcc::tools {

/// Returns the exit code.
int compareCommand(int argc, char **argv);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCCOMPARE_COMMAND_H
