//===- Units.h - How values are computed again ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_RECOMPUTE_UNITS_H
#define TCC_COMPILER_PASSES_EXEC_RECOMPUTE_UNITS_H

#include "compiler/passes/exec/recompute/Trace.h"

namespace tcc::exec {

/// Gives commands their times, and each value that can be computed again its
/// unit. Bits are those of the first time: pointwise ops alone have the same
/// wherever they are computed, and the elements of a product on the host are
/// one chain each; whatever else has loops is launched again as it is.
void findUnits(Trace &trace, fusion::CostModel &hostModel,
               fusion::CostModel &deviceModel);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_RECOMPUTE_UNITS_H
