//===- Packing.h - Allocations within a given arena -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_PACKING_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_PACKING_H

#include "compiler/passes/exec/memory/Placement.h"
#include <optional>

namespace tcc::exec {

/// Offsets below `capacity` for all `allocations`, by exhaustive search;
/// nullopt if there are none, or `steps` were not enough to find them. It takes
/// what it does off `steps`: about as many visits of an allocation or of a
/// stretch of time. The same input gives the same offsets on every machine.
///
/// Only canonical placements are tried (Moffitt, "MiniMalloc: A Lightweight
/// Memory Allocator for Hardware-Accelerated Machine Learning", ASPLOS 2023):
/// each allocation lies at 0 or on another one, they are placed from the lowest
/// offset up, and none is placed so high that an unplaced one fits below it.
std::optional<std::vector<int64_t>>
packWithin(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
           int64_t &steps);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_PACKING_H
