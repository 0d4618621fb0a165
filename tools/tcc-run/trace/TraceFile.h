//===- TraceFile.h - What a run did, as a file ------------------*- C++ -*-===//
//
// Trace events as Perfetto and Chrome read them: JSON with a track for each
// thread, times in microseconds (docs/sessions.md).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_TRACEFILE_H
#define TCC_TOOLS_TCCRUN_TRACE_TRACEFILE_H

#include "tools/tcc-run/trace/TraceLog.h"

namespace tcc::tools {

/// Writes the updates of one rank, of which there is one at least.
runtime::Status writeTrace(const TraceLog &log,
                           const runtime::TrainingSession &session,
                           const std::string &path);

/// Traces a run, a replay where the device has that, and writes it.
runtime::Status writeTrace(runtime::Context &context, const std::string &path);

/// The file of a rank: that of the first one is `path` itself, for another one
/// ".rank-R" comes before its ending.
std::string tracePathOf(const std::string &path, int rank);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_TRACEFILE_H
