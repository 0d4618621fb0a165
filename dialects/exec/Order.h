//===- Order.h - Which commands end before others begin ---------*- C++ -*-===//
//
// A partial order made of lanes and tokens. A lane runs its commands one after
// another; where it waits for a token it begins what follows after all that the
// token's lane has done up to there. What is not ordered so may run at the same
// time.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_DIALECTS_EXEC_ORDER_H
#define TCC_DIALECTS_EXEC_ORDER_H

#include "dialects/exec/ExecOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc::exec {

/// The order of the commands of an entry point, as they were when it was made:
/// commands may be erased afterwards, not moved.
class Order {
public:
  /// How many commands of a block have ended in each lane; lane 0 counts the
  /// beginning of the block as one more.
  using Clock = llvm::ArrayRef<unsigned>;

  /// First and last position of a command and what is nested in it, among those
  /// of all commands in the order of the program.
  struct Span {
    int64_t begin, end;
  };

  explicit Order(EntryOp entry);

  EntryOp getEntry() const { return entry; }
  unsigned getLanes() const { return lanes; }
  Span getSpan(mlir::Operation *command) const {
    const Node &node = nodes.find(command)->second;
    return {node.begin, node.end};
  }

  /// True if `a` has ended whenever `b` begins. One that is nested in a command
  /// of the block of the other, or of the innermost one that has both, counts
  /// as that command. A wait begins when it is over.
  bool precedes(mlir::Operation *a, mlir::Operation *b) const;

  /// What has ended in the block of `command` when it begins.
  Clock getClock(mlir::Operation *command) const;
  /// What has ended on lane 0 when the block of `command` ends: all of it if
  /// its lanes are joined.
  Clock getEnd(mlir::Block *block) const;
  /// The number of `command` on its lane, in the clocks of its block.
  unsigned getRank(mlir::Operation *command) const {
    return nodes.find(command)->second.rank;
  }
  /// The commands of `block` on each lane.
  Clock getCounts(mlir::Block *block) const;

private:
  struct Node {
    int64_t begin, end;
    unsigned lane, rank;
    size_t clock; ///< where its clock begins in `clocks`
  };
  struct BlockClocks {
    size_t end, counts;
  };

  void visit(mlir::Block &block, int64_t &position);
  size_t store(Clock clock);
  Clock load(size_t place) const { return Clock(clocks).slice(place, lanes); }

  EntryOp entry;
  unsigned lanes;
  llvm::DenseMap<mlir::Operation *, Node> nodes;
  llvm::DenseMap<mlir::Block *, BlockClocks> blocks;
  std::vector<unsigned> clocks;
};

/// Checks that each lane that a block of `order` uses waits for lane 0 first,
/// that lane 0 waits for it in the end, and that no two commands touch the same
/// bytes, one of them writing, unless one precedes the other.
mlir::LogicalResult verifyLanes(const Order &order);

} // namespace tcc::exec

#endif // TCC_DIALECTS_EXEC_ORDER_H
