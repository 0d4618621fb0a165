//===- LaunchCost.h - What the cost model says of a launch ------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_LAUNCHCOST_H
#define TCC_COMPILER_PASSES_EXEC_LAUNCHCOST_H

#include "compiler/passes/graph/fusion/Cost.h"
#include "dialects/exec/ExecOps.h"
#include "runtime/package/Program_generated.h"

namespace tcc::exec {

/// What its flops are done by, and how many of them the machine does.
format::Arithmetic getArithmetic(KernelOp kernel);
double getFlopsPerMicrosecond(const Machine &machine,
                              format::Arithmetic arithmetic);

/// Microseconds of `launch` of `kernel`, by the work that `tcc-select-kernels`
/// counted, where the size slots have the values `slots`.
fusion::Times getTimes(LaunchOp launch, KernelOp kernel,
                       llvm::ArrayRef<int64_t> slots);
double getMicroseconds(LaunchOp launch, KernelOp kernel,
                       llvm::ArrayRef<int64_t> slots);

/// The upper bounds of the module's symbols, and 1 for the other slots of
/// `entry`.
llvm::SmallVector<int64_t> getLargestSizes(EntryOp entry);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_LAUNCHCOST_H
