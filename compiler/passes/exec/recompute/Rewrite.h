//===- Rewrite.h - The program that a choice leads to -----------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_RECOMPUTE_REWRITE_H
#define TCC_COMPILER_PASSES_EXEC_RECOMPUTE_REWRITE_H

#include "compiler/passes/exec/recompute/Simulation.h"

namespace tcc::exec {

/// Builds the entry that the last run of `simulation` describes at the end of
/// `module`, which has the kernels of the traced one; it gets those that units
/// need, one each.
EntryOp buildEntry(const Trace &trace, const Simulation &simulation,
                   mlir::ModuleOp module);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_RECOMPUTE_REWRITE_H
