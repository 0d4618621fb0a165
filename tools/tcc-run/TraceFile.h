//===- TraceFile.h - What the lanes of a run did, as a file -----*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACEFILE_H
#define TCC_TOOLS_TCCRUN_TRACEFILE_H

#include "runtime/executor/Context.h"

namespace tcc::tools {

/// Traces a run, a replay where the device has that, and writes it as the trace
/// events that browsers show: a track for each lane, times in microseconds from
/// the first event's begin.
runtime::Status writeTrace(runtime::Context &context, const std::string &path);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACEFILE_H
