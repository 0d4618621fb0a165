//===- Schedule.h - Orders of the commands of a block -----------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_SCHEDULE_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_SCHEDULE_H

#include "dialects/exec/ExecOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc::exec {

/// The commands of one block, what each must wait for, and the scratch that
/// they share. Nested commands count as their command of this block.
class BlockGraph {
public:
  explicit BlockGraph(mlir::Block &block);

  mlir::Block &getBlock() const { return *block; }
  unsigned size() const { return nodes.size(); }
  mlir::Operation *getCommand(unsigned i) const { return nodes[i].command; }
  /// Scratch that blocks nested in command `i` need while it runs.
  void setInnerBytes(unsigned i, int64_t bytes) { nodes[i].innerBytes = bytes; }

  std::vector<unsigned> getProgramOrder() const;
  /// Runs next, of the commands that may run, the one that adds the fewest
  /// bytes; of equals the first of the program.
  std::vector<unsigned> getSmallestOrder() const;
  /// `order` with what adds bytes just before its first reader, and what frees
  /// more than it adds just behind what it waits for.
  std::vector<unsigned> getTightOrder(llvm::ArrayRef<unsigned> order) const;
  /// The most bytes of scratch that are live at once.
  int64_t getPeak(llvm::ArrayRef<unsigned> order) const;

private:
  struct Node {
    mlir::Operation *command;
    llvm::SmallVector<unsigned> successors;
    unsigned predecessorCount = 0;
    llvm::SmallVector<unsigned> buffers; // scratch of this block that it uses
    int64_t innerBytes = 0;
  };
  /// How far each buffer is: commands that still use it, and whether one has.
  struct Progress {
    std::vector<unsigned> usesLeft;
    std::vector<bool> isLive;
  };

  void collectBuffers();
  void connect();
  void addEdge(unsigned from, unsigned to);
  Progress start() const;
  int64_t getGrowth(unsigned node, const Progress &progress) const;
  /// Bytes that each command adds less those that it frees, in `order`.
  std::vector<int64_t> getGrowths(llvm::ArrayRef<unsigned> order) const;
  std::vector<unsigned> delayGrowth(llvm::ArrayRef<unsigned> order) const;
  std::vector<unsigned> hastenRelease(llvm::ArrayRef<unsigned> order) const;
  /// Runs a command; returns how many bytes it adds and frees.
  std::pair<int64_t, int64_t> run(unsigned node, Progress &progress) const;

  mlir::Block *block;
  std::vector<Node> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> indices;
  std::vector<int64_t> bufferBytes;
  std::vector<unsigned> useCounts;
};

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_SCHEDULE_H
