//===- Orders.h - Places by searching for an order --------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_ORDERS_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_ORDERS_H

#include "compiler/passes/exec/memory/Placement.h"

namespace tcc::exec {

/// Offsets below `capacity` from an order: one by one, each allocation lies at
/// the lowest offset where there is room. False, with `offsets` as they were,
/// if about `steps` nanoseconds, which it takes off, are not enough to find
/// such an order. The same input gives the same offsets on every machine.
///
/// A local search: what lies too high, or something that lives with it, goes
/// before something that lives with that. It orders only the core: what is not
/// small and lives at a time of many bytes. The others come last, largest
/// first, and those that find no room below `capacity` then belong to the core.
bool findOrder(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
               std::vector<int64_t> &offsets, int64_t &steps);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_ORDERS_H
