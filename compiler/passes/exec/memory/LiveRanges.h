//===- LiveRanges.h - When buffers hold something ---------------*- C++ -*-===//
//
// A buffer is live from the first command that uses it to the last. It belongs
// to its block: what is nested in a command of that block counts as the
// command, so that what a loop carries is live throughout.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_LIVERANGES_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_LIVERANGES_H

#include "compiler/passes/exec/memory/Placement.h"
#include "dialects/exec/Order.h"

namespace tcc::exec {

using Commands = llvm::SetVector<mlir::Operation *>;

/// The commands of its block that use `buffer`.
Commands getUses(BufferOp buffer);

/// Bytes that a scratch buffer takes in the arena.
int64_t getArenaBytes(BufferOp buffer);

/// Bytes that are live at each of `count` positions.
std::vector<int64_t> countLive(llvm::ArrayRef<LiveRange> ranges, size_t count);

/// The live ranges of an entry point whose commands stay in their order. Uses
/// are those at the time of the call.
class LiveRanges {
public:
  explicit LiveRanges(EntryOp entry) : order(entry) {}

  const Order &getOrder() const { return order; }

  /// True if all of `first` have ended when any of `second` begins; commands of
  /// one block.
  bool precede(const Commands &first, const Commands &second) const;
  /// True if no other command that uses `buffer` begins before `command` has
  /// ended, or ends after it began. `command` is of its block.
  bool isFirstUse(BufferOp buffer, mlir::Operation *command) const;
  bool isLastUse(BufferOp buffer, mlir::Operation *command) const;

  /// The scratch that commands use, in the order of the program, with what it
  /// is live with.
  struct Scratch {
    std::vector<BufferOp> buffers;
    std::vector<Allocation> allocations;    ///< one a buffer
    std::vector<llvm::BitVector> unordered; ///< of each allocation
  };
  Scratch getScratch() const;

private:
  Order order;
};

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_LIVERANGES_H
