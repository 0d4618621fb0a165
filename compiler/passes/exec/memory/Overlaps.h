//===- Overlaps.h - Allocations that make room for each other ---*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_OVERLAPS_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_OVERLAPS_H

#include "compiler/passes/exec/memory/Placement.h"

namespace tcc::exec {

/// Moves allocations from `offsets` to below `capacity`, then those that
/// overlap until none do. False, with `offsets` as they were, if about `steps`
/// nanoseconds, which it takes off, are not enough for that. The same input
/// gives the same offsets on every machine.
///
/// Guided local search (Faroe, Pisinger, Zachariasen, "Guided Local Search for
/// the Three-Dimensional Bin-Packing Problem", INFORMS J. Computing, 2003): one
/// allocation at a time goes where it overlaps least, by weighted bytes; where
/// none has a better place, the pairs that overlap most get more weight.
bool removeOverlaps(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
                    std::vector<int64_t> &offsets, int64_t &steps);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_OVERLAPS_H
