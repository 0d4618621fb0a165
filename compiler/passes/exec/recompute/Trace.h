//===- Trace.h - What an entry point runs, to be rearranged -----*- C++ -*-===//
//
// The commands of an entry's block in their order, and the scratch that they
// use. Whatever is nested in a command counts as the command.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_EXEC_RECOMPUTE_TRACE_H
#define TCC_COMPILER_PASSES_EXEC_RECOMPUTE_TRACE_H

#include "compiler/passes/exec/memory/Placement.h"
#include "compiler/passes/graph/fusion/Cost.h"
#include "dialects/exec/ExecOps.h"
#include "dialects/graph/GraphOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc::exec {

using ValueId = unsigned;
using CommandId = unsigned;
inline constexpr unsigned kNone = ~0u;

/// A scratch buffer of the block.
struct TracedValue {
  BufferOp buffer;
  int64_t bytes = 0; ///< as placed
  /// The launch that writes it whole, once, before any other command uses it;
  /// kNone: it is written otherwise, or used beside other commands, and stays
  /// where it is.
  CommandId writer = kNone;
  unsigned result = 0; ///< of the launch
  /// Commands that use it, increasing; the writer is the first.
  llvm::SmallVector<CommandId> uses;
  unsigned unit = kNone; ///< what makes it again
  /// The longest time between two uses that follow each other.
  CommandId gapBegin = 0, gapEnd = 0;

  mlir::Value getBuffer() const { return BufferOp(buffer).getResult(); }
};

/// A result that a launch can write over an input.
struct InPlacePair {
  ValueId result, input;
};

struct TracedCommand {
  graph::FusedOp getComputation() const {
    return llvm::cast<graph::FusedOp>(KernelOp(kernel).getComputation());
  }

  mlir::Operation *op = nullptr;
  KernelOp kernel; ///< of a launch, which no other has
  llvm::SmallVector<ValueId> reads, writes;
  llvm::SmallVector<InPlacePair> inPlace;
  double microseconds = 0; ///< of a launch
  int64_t innerBytes = 0;  ///< of scratch in nested blocks
  /// A launch whose results are all values that it alone writes.
  bool isMovable = false;
};

/// A computation that makes values again: all of a launch, or those ops of it
/// that lead to some of its results.
struct Unit {
  /// An input: a value, or a buffer that is no scratch.
  struct Input {
    ValueId value = kNone;
    mlir::Value buffer, inner; ///< in the block, in the launch's computation
  };
  struct Output {
    ValueId value = kNone; ///< kNone: nobody reads it again
    unsigned result = 0;
    int64_t bytes = 0;
  };
  CommandId launch = kNone;
  bool isWhole = true;
  llvm::SmallVector<mlir::Operation *> members; ///< unless it is whole
  llvm::SmallVector<Input> inputs;
  llvm::SmallVector<Output> outputs;
  /// The first command after which its inputs are no more what they were.
  CommandId validUntil = kNone;
  double microseconds = 0;
};

struct Trace {
  /// The scratch of nested blocks needs no more bytes than now.
  Trace(EntryOp entry, fusion::CostModels &models);

  mlir::Block &getBlock() const { return EntryOp(entry).getBody().front(); }

  EntryOp entry;
  std::vector<TracedCommand> commands;
  std::vector<TracedValue> values;
  std::vector<Unit> units;

private:
  void collectCommands();
  void collectValues();
  void addValue(BufferOp buffer);
  void collectPairs(CommandId command);
  void findGap(TracedValue &value) const;

  llvm::DenseMap<mlir::Operation *, CommandId> ids;
};

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_RECOMPUTE_TRACE_H
