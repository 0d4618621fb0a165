//===- Placement.h - Offsets for buffers with lifetimes ---------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_PLACEMENT_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_PLACEMENT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/BitVector.h"
#include <cstdint>
#include <vector>

namespace tcc::exec {

/// Bytes that are needed from position `begin` to `end`, both inclusive.
struct LiveRange {
  int64_t begin, end;
  int64_t bytes;
};

/// A range with what else it needs its bytes beside: of the other allocations
/// those whose `id` is in `unordered`, though their positions are apart.
struct Allocation : LiveRange {
  Allocation(int64_t begin, int64_t end, int64_t bytes)
      : LiveRange{begin, end, bytes} {}

  unsigned id = 0;
  const llvm::BitVector *unordered = nullptr; ///< null: none
};

inline bool areUnordered(const Allocation &lhs, const Allocation &rhs) {
  return lhs.unordered && lhs.unordered->test(rhs.id);
}

/// True if the two must not share bytes.
inline bool isLiveWith(const Allocation &lhs, const Allocation &rhs) {
  return (lhs.begin <= rhs.end && rhs.begin <= lhs.end) ||
         areUnordered(lhs, rhs);
}

struct Placement {
  std::vector<int64_t> offsets; ///< one an allocation
  int64_t size = 0;             ///< of the arena
};

/// The most bytes that are found to be needed at once: no placement is smaller.
int64_t getMaxLive(llvm::ArrayRef<Allocation> allocations);

/// Places `allocations` so that none overlap. The same input gives the same
/// offsets on every machine.
Placement placeAllocations(llvm::ArrayRef<Allocation> allocations);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_PLACEMENT_H
