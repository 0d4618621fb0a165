//===- KernelGraph.h - The ops of a block, grouped into kernels -*- C++ -*-===//
//
// Starts with one group for each op and keeps a topological order of the groups
// while they merge. An op has one home group, which makes its values available
// to others; groups may hold copies of cheap ops for themselves. Ops that never
// become part of a kernel are groups of their own (`isFixed`).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_KERNELGRAPH_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_KERNELGRAPH_H

#include "compiler/passes/graph/fusion/Region.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace tcc::fusion {

using OpId = unsigned;
using GroupId = unsigned;

struct Group {
  mlir::SmallVector<OpId, 4> members; // increasing: block order
  mlir::SmallVector<mlir::Value, 2> results;
  Region region;
  double microseconds = 0;
  unsigned order = 0;
  unsigned version = 0;
  bool isFixed = false;
  bool isAlive = true;
};

/// A group that might be: what it would hold, and whether it can.
struct Draft {
  mlir::SmallVector<OpId, 8> members;
  mlir::SmallVector<mlir::Value, 2> results;
  Analysis analysis;
  double microseconds = 0;

  explicit operator bool() const { return analysis.region.has_value(); }
};

class KernelGraph {
public:
  KernelGraph(mlir::Block &block, CostModel &model);

  const Group &operator[](GroupId group) const { return groups[group]; }
  unsigned size() const { return groups.size(); }
  mlir::Operation *getOp(OpId op) const { return ops[op]; }
  CostModel &getModel() { return model; }

  /// Groups that read values of `group` (no more than `limit`), and those whose
  /// values it reads; each once, fixed ones included.
  mlir::SmallVector<GroupId>
  getConsumers(GroupId group,
               size_t limit = std::numeric_limits<size_t>::max()) const;
  mlir::SmallVector<GroupId> getProducers(GroupId group) const;
  /// Later groups close by that read a value as large as the loop space of
  /// `group`, which it reads too.
  mlir::SmallVector<GroupId> getSiblings(GroupId group) const;

  /// `first` and `second` in one group.
  Draft draftMerge(GroupId first, GroupId second);
  /// `reader` with its own copy of `ops`.
  Draft draftCopy(mlir::ArrayRef<OpId> ops, GroupId reader);
  /// `group` without one of its results and what leads to that alone.
  Draft draftWithout(GroupId group, mlir::Value result);

  /// The ops of `group` that make its result `value` of what it reads and of
  /// its other results; none if one of them has loops of its own.
  mlir::SmallVector<OpId> getSlice(GroupId group, mlir::Value value) const;
  /// The other groups that read `value`, the result of an op at home in
  /// `group`.
  mlir::SmallVector<GroupId> getReaders(GroupId group, mlir::Value value) const;

  /// True if one group of both would depend on itself.
  bool wouldCycle(GroupId first, GroupId second) const;

  /// These carry out a draft; merge keeps the later one, which it returns.
  void adopt(GroupId group, Draft draft);
  GroupId merge(GroupId first, GroupId second, Draft draft);
  void copy(mlir::ArrayRef<OpId> ops, GroupId reader, Draft draft);
  void shrink(GroupId group, Draft draft);
  /// Removes a group all of whose readers hold copies.
  void remove(GroupId group);

  /// The groups, each after those that it reads.
  mlir::SmallVector<GroupId> getOrder() const;

private:
  void addOp(mlir::Operation *op);
  void addReads(OpId reader, mlir::Operation *op);
  void addSizes(OpId reader, mlir::Operation *op);
  void addEdge(OpId producer, OpId consumer);
  bool holds(GroupId group, OpId op) const {
    return llvm::is_contained(groupsOf[op], group);
  }
  bool isReadOutside(OpId op, mlir::Value value, GroupId first,
                     GroupId second) const;
  Draft analyze(mlir::ArrayRef<OpId> members, GroupId first, GroupId second,
                size_t maxMembers);
  /// Says whether the draft's members can make its results, and in what time.
  void measure(Draft &draft);
  /// The members of `group` that lead to `results` from what it reads and from
  /// `stops`.
  mlir::SmallVector<OpId> collect(GroupId group,
                                  mlir::ArrayRef<mlir::Value> results,
                                  mlir::ArrayRef<mlir::Value> stops) const;
  void leave(GroupId group, OpId op);
  /// Groups before `until` in order that depend on `from`; nothing if `until`
  /// does, other than directly.
  std::optional<llvm::DenseSet<GroupId>> findBetween(GroupId from,
                                                     GroupId until) const;

  CostModel &model;
  std::vector<mlir::Operation *> ops;
  std::vector<Group> groups;
  std::vector<mlir::SmallVector<GroupId, 2>> groupsOf;
  std::vector<int64_t> homes; // -1: only copies
  std::vector<mlir::SmallVector<OpId, 4>> producersOf, consumersOf;
  llvm::DenseMap<mlir::Operation *, OpId> ids;
  llvm::DenseMap<unsigned, OpId> sizeSetters; ///< by the computed symbol
  llvm::DenseMap<mlir::Value, mlir::SmallVector<OpId, 4>> readers;
  std::vector<int64_t> order; // position -> group, -1 where one was removed
  llvm::StringMap<Analysis> analyses; // by the bytes of members and results
};

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_KERNELGRAPH_H
