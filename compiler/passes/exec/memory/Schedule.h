//===- Schedule.h - Orders of the commands of a block -----------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_SCHEDULE_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_SCHEDULE_H

#include "compiler/passes/exec/memory/Placement.h"
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
  /// `order` with what is started as early, and waited for as late, as it may
  /// be without more bytes live at the peak.
  std::vector<unsigned> getOverlappedOrder(std::vector<unsigned> order) const;
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
  void run(unsigned node, Progress &progress) const;
  /// Moves what is at `from` to the place nearest to `to` where the peak does
  /// not rise.
  void moveTowards(size_t from, size_t to, std::vector<unsigned> &order) const;
  /// When the buffers are live if commands run in `order`.
  std::vector<LiveRange> getRanges(llvm::ArrayRef<unsigned> order) const;

  mlir::Block *block;
  std::vector<Node> nodes;
  llvm::DenseMap<mlir::Operation *, unsigned> indices;
  std::vector<int64_t> bufferBytes;
  std::vector<std::vector<unsigned>> bufferUses; ///< commands
};

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_SCHEDULE_H
