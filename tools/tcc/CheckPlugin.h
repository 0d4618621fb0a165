//===- CheckPlugin.h - tcc --check-plugin -----------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCC_CHECKPLUGIN_H
#define TCC_TOOLS_TCC_CHECKPLUGIN_H

#include "tcc/compiler.h"
#include <string>

namespace tcc::tools {

/// Runs the examples of the operators in library `path`, each in a process of
/// its own, and says what is wrong with them: a line for each. `given` has the
/// target whose kernels are run. The exit code: 1 if an operator is wrong, else
/// as of a compilation.
int checkPlugin(const std::string &path, CompileOptions given, bool isQuiet);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCC_CHECKPLUGIN_H
