//===- Placement.h - Offsets for buffers with lifetimes ---------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_PLACEMENT_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_PLACEMENT_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace tcc::exec {

/// `bytes` bytes that are needed from `begin` to `end`, both inclusive.
struct Allocation {
  int64_t begin, end;
  int64_t bytes;
};

struct Placement {
  std::vector<int64_t> offsets; ///< one an allocation
  int64_t size = 0;             ///< of the arena
};

/// The most bytes that are needed at once: no placement is smaller.
int64_t getMaxLive(llvm::ArrayRef<Allocation> allocations);

/// Places `allocations` so that none overlap. The same input gives the same
/// offsets on every machine.
Placement placeAllocations(llvm::ArrayRef<Allocation> allocations);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_PLACEMENT_H
