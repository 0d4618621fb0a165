//===- Units.h - How values are computed again ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_RECOMPUTE_UNITS_H
#define TCC_COMPILER_PASSES_EXEC_RECOMPUTE_UNITS_H

#include "compiler/passes/exec/recompute/Trace.h"

namespace tcc::exec {

/// Gives commands their times, and each value that can be computed again its
/// unit. Bits are those of the first time: pointwise ops alone have the same
/// wherever they are computed, and so are the elements of a product
/// where each is one chain (TargetCapabilities); whatever else has loops is
/// launched again as it is.
void findUnits(Trace &trace, fusion::CostModels &models);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_RECOMPUTE_UNITS_H
