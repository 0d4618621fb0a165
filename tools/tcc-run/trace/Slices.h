//===- Slices.h - What commands are part of ---------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_SLICES_H
#define TCC_TOOLS_TCCRUN_TRACE_SLICES_H

#include "tools/tcc-run/trace/TracedRun.h"

namespace tcc::tools {

/// A stretch of a lane.
struct Slice {
  std::string name; ///< a phase, or the path of a module: "h.0.attn"
  int64_t begin, end;
};

/// The phases of a run and the modules of the model that launches of a lane are
/// of, in the order of their begins; each is within the one before, or after
/// it. What lies between two launches of a module is part of it.
std::vector<Slice> listSlices(const TracedRun &run, uint32_t lane);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_SLICES_H
