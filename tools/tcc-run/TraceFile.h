//===- TraceFile.h - What the lanes of a run did, as a file -----*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACEFILE_H
#define TCC_TOOLS_TCCRUN_TRACEFILE_H

#include "runtime/executor/Context.h"

namespace tcc::tools {

/// A run of a context, and what its lanes did.
struct TracedRun {
  runtime::Context *context;
  runtime::Trace::Reading reading;

  /// Nanoseconds that lane 0 waited for other lanes: what they did meanwhile
  /// was not hidden behind it.
  int64_t exposed() const;
};

/// Writes runs, of which there is one at least, as the trace events that
/// browsers show: a track for each lane, times in microseconds from the first
/// event's begin.
runtime::Status writeTrace(std::span<const TracedRun> runs,
                           const std::string &path);

/// Traces a run, a replay where the device has that, and writes it.
runtime::Status writeTrace(runtime::Context &context, const std::string &path);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACEFILE_H
