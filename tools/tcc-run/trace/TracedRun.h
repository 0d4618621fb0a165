//===- TracedRun.h - A run, and what its lanes did --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_TRACEDRUN_H
#define TCC_TOOLS_TCCRUN_TRACE_TRACEDRUN_H

#include "runtime/executor/Context.h"

namespace tcc::tools {

/// A run of a context, which outlives it, and what its lanes did.
struct TracedRun {
  runtime::Context *context = nullptr;
  runtime::Trace::Reading reading;
  int64_t batch = -1; ///< the number of the batch that it took; -1: none
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_TRACEDRUN_H
