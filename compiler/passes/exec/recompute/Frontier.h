//===- Frontier.h - The choices worth making --------------------*- C++ -*-===//
//
// What memory costs: choices with fewer and fewer bytes at the peak, each of
// the least time that was found. They depend on the entry alone, not on a
// budget, so that more memory never costs more time.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_EXEC_RECOMPUTE_FRONTIER_H
#define TCC_COMPILER_PASSES_EXEC_RECOMPUTE_FRONTIER_H

#include "compiler/passes/exec/recompute/Simulation.h"

namespace tcc::exec {

struct FrontierPoint {
  Choice choice;
  int64_t peak;
  double microseconds;
};

/// The first takes the least time; then time rises as the peak falls.
std::vector<FrontierPoint> findFrontier(const Trace &trace);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_RECOMPUTE_FRONTIER_H
