//===- Liveness.h - When scratch buffers hold something ---------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_LIVENESS_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_LIVENESS_H

#include "dialects/exec/ExecOps.h"
#include "llvm/ADT/SetVector.h"

namespace tcc::exec {

/// The commands that use `buffer` or a view of it.
llvm::SetVector<mlir::Operation *> getCommands(BufferOp buffer);

/// The scratch buffers of `entry` that a command uses hold something from
/// `begin` to `end`, both inclusive, in the order of commands. A buffer belongs
/// to its block: a nested command that uses it counts as the whole command of
/// that block, so that what a loop carries is live throughout.
struct Lifetime {
  BufferOp buffer;
  int64_t begin, end;
};
std::vector<Lifetime> computeLifetimes(EntryOp entry);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_LIVENESS_H
