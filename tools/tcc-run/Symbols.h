//===- Symbols.h - Names of kernels for perf and gdb ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_SYMBOLS_H
#define TCC_TOOLS_TCCRUN_SYMBOLS_H

#include "runtime/executor/Executable.h"

namespace tcc::tools {

/// Writes where each function of the mapped code lies to /tmp/perf-PID.map,
/// which perf reads by itself, and the code to /tmp/tcc-PID.so; returns the gdb
/// command that loads it.
runtime::Result<std::string>
writeSymbols(const runtime::Executable &executable);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_SYMBOLS_H
