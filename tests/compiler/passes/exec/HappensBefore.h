//===- HappensBefore.h - Which commands edges lead to -----------*- C++ -*-===//
#ifndef TCC_TESTS_COMPILER_PASSES_EXEC_HAPPENSBEFORE_H
#define TCC_TESTS_COMPILER_PASSES_EXEC_HAPPENSBEFORE_H

#include "dialects/exec/ExecOps.h"
#include <set>
#include <utility>
#include <vector>

namespace tcc::tests {

using CommandList = std::vector<mlir::Operation *>;
CommandList getCommands(mlir::Block &block);

/// Commands, one after another, as a graph: an edge leads from each to the next
/// one of its lane, and to the wait for its token; lane 0 begins and ends with
/// them. Whatever no path leads to may happen before.
class HappensBefore {
public:
  /// A command is there as often as it runs. No edge leads from what is waited
  /// for to the wait `without`.
  explicit HappensBefore(const CommandList &commands,
                         mlir::Operation *without = nullptr);

  /// Of two that run once.
  bool precedes(mlir::Operation *a, mlir::Operation *b) const;

  using Pair = std::pair<mlir::Operation *, mlir::Operation *>;
  /// Commands without a path between them that use the same bytes, one of them
  /// writing; that of the higher lane is the first.
  std::set<Pair> findRaces() const;
  /// Commands that the beginning does not precede, or that do not precede the
  /// end.
  std::set<mlir::Operation *> findLoose() const;

private:
  using Bytes = std::set<std::pair<mlir::Operation *, int64_t>>;
  struct Node {
    mlir::Operation *op = nullptr; ///< of the beginning and the end: none
    uint64_t lane = 0;
    Bytes reads, writes;
    std::vector<size_t> next;
    std::set<size_t> reached;
  };

  void addNode(mlir::Operation *op);
  void addEdges(mlir::Operation *without);
  void search(size_t from);
  size_t find(mlir::Operation *op) const;
  static void addBytes(mlir::Value buffer, Bytes &bytes);
  static bool areInConflict(const Node &a, const Node &b);

  std::vector<Node> nodes; ///< in the order of the program
};

} // namespace tcc::tests

#endif // TCC_TESTS_COMPILER_PASSES_EXEC_HAPPENSBEFORE_H
