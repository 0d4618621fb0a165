#include "compiler/passes/graph/fusion/KernelGraph.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

/// Bounds on what one decision looks at: they keep the pass linear in practice.
/// Kernels of many elements need registers for what is live; those of scalars
/// alone, as a training step has, run once.
static constexpr unsigned kMaxMembers = 64;
static constexpr unsigned kMaxScalarMembers = 256;
static constexpr unsigned kMaxSearch = 512;
static constexpr unsigned kMaxSiblingDistance = 64;
static constexpr unsigned kMaxSiblings = 4;

/// True for ops that stay where they are and are read in place.
static bool isSource(Operation *op) {
  return op->getNumOperands() == 0 && !isFusible(op) &&
         !op->hasTrait<OpTrait::IsTerminator>() && op->getNumRegions() == 0;
}

KernelGraph::KernelGraph(Block &block, CostModel &model) : model(model) {
  // Ops that nothing reads, directly or through views, do not take part.
  llvm::DenseSet<Operation *> live;
  for (Operation &op : llvm::reverse(block)) {
    if (!op.use_empty() && llvm::none_of(op.getUsers(), [&](Operation *user) {
          Operation *ancestor = block.findAncestorOpInBlock(*user);
          return live.contains(ancestor);
        }))
      continue;
    if (op.use_empty() && (isFusible(&op) || isView(&op)))
      continue;
    live.insert(&op);
  }
  for (Operation &op : block)
    if (live.contains(&op) && !isView(&op) && !isSource(&op))
      addOp(&op);
}

void KernelGraph::addOp(Operation *op) {
  OpId id = ops.size();
  ops.push_back(op);
  ids[op] = id;
  groupsOf.push_back({id});
  homes.push_back(id);
  producersOf.emplace_back();
  consumersOf.emplace_back();
  order.push_back(id);
  addReads(id, op);
  addSizes(id, op);
  Group &group = groups.emplace_back();
  group.members = {id};
  group.order = id;
  group.isFixed = !isFusible(op);
}

/// What uses a computed symbol follows the op that sets it.
void KernelGraph::addSizes(OpId reader, Operation *op) {
  op->walk([&](Operation *nested) {
    for (unsigned symbol : getUsedSymbols(nested)) {
      auto setter = sizeSetters.find(symbol);
      if (setter != sizeSetters.end() && setter->second != reader)
        addEdge(setter->second, reader);
    }
  });
  if (auto definition = dyn_cast<SizeDefinitionOpInterface>(op))
    for (unsigned symbol : definition.getDefinedSymbols())
      sizeSetters[symbol] = reader;
}

void KernelGraph::addEdge(OpId producer, OpId consumer) {
  if (llvm::is_contained(producersOf[consumer], producer))
    return;
  producersOf[consumer].push_back(producer);
  consumersOf[producer].push_back(consumer);
}

/// Ops with regions read what their bodies capture.
void KernelGraph::addReads(OpId reader, Operation *op) {
  op->walk([&](Operation *nested) {
    for (Value operand : nested->getOperands()) {
      Value source = getSource(operand);
      if (getSplat(source))
        continue;
      SmallVector<OpId, 4> &list = readers[source];
      if (list.empty() || list.back() != reader)
        list.push_back(reader);
      auto it = ids.find(source.getDefiningOp());
      if (it != ids.end() && it->second != reader)
        addEdge(it->second, reader);
    }
  });
}

SmallVector<GroupId> KernelGraph::getConsumers(GroupId group,
                                               size_t limit) const {
  SmallVector<GroupId> consumers;
  llvm::SmallDenseSet<GroupId, 16> seen{group};
  for (OpId op : groups[group].members) {
    if (homes[op] != int64_t(group))
      continue;
    for (OpId reader : consumersOf[op])
      for (GroupId other : groupsOf[reader])
        if (!holds(other, op) && seen.insert(other).second) {
          consumers.push_back(other);
          if (consumers.size() == limit)
            return consumers;
        }
  }
  return consumers;
}

SmallVector<GroupId> KernelGraph::getProducers(GroupId group) const {
  SmallVector<GroupId> producers;
  llvm::SmallDenseSet<GroupId, 16> seen{group};
  for (OpId op : groups[group].members)
    for (OpId producer : producersOf[op])
      if (!holds(group, producer) && homes[producer] >= 0 &&
          seen.insert(homes[producer]).second)
        producers.push_back(homes[producer]);
  return producers;
}

SmallVector<GroupId> KernelGraph::getSiblings(GroupId group) const {
  SmallVector<GroupId> siblings;
  const Group &self = groups[group];
  if (!self.region.space)
    return siblings;
  double count = model.getMaxCount(self.region.space);
  for (OpId op : self.members)
    for (Value operand : ops[op]->getOperands()) {
      auto it = readers.find(getSource(operand));
      if (it == readers.end() ||
          model.getMaxCount(it->first.getType()) != count)
        continue;
      const auto *next = llvm::upper_bound(it->second, op);
      for (unsigned i = 0; i < kMaxSiblings && next != it->second.end();
           ++i, ++next)
        for (GroupId other : groupsOf[*next])
          if (other != group && !groups[other].isFixed &&
              std::abs(int64_t(groups[other].order) - int64_t(self.order)) <
                  kMaxSiblingDistance &&
              !llvm::is_contained(siblings, other))
            siblings.push_back(other);
    }
  return siblings;
}

bool KernelGraph::isReadOutside(OpId op, Value value, GroupId first,
                                GroupId second) const {
  auto it = readers.find(value);
  if (it == readers.end())
    return false;
  return llvm::any_of(it->second, [&](OpId reader) {
    return llvm::any_of(groupsOf[reader], [&](GroupId group) {
      return group != first && group != second && !holds(group, op);
    });
  });
}

/// The group of `members`, whose values others read if their home is `first`
/// or `second`. A kernel of scalars alone may have more than `maxMembers`.
Draft KernelGraph::analyze(ArrayRef<OpId> members, GroupId first,
                           GroupId second, size_t maxMembers) {
  Draft draft;
  draft.members.assign(members.begin(), members.end());
  for (OpId op : members) {
    if (homes[op] != int64_t(first) && homes[op] != int64_t(second))
      continue;
    // An irregular kernel writes all its results.
    auto kernel = dyn_cast<KernelOpInterface>(ops[op]);
    bool isWhole = kernel && kernel.getKernelKind() == KernelKind::irregular;
    for (Value value : ops[op]->getResults())
      if (isWhole || isReadOutside(op, value, first, second))
        draft.results.push_back(value);
  }
  bool isOfScalars = llvm::all_of(draft.results, [&](Value result) {
    return model.getMaxCount(result.getType()) == 1;
  });
  if (members.size() > (isOfScalars ? kMaxScalarMembers : maxMembers))
    draft.analysis = {std::nullopt, "too many ops for one kernel"};
  else
    measure(draft);
  return draft;
}

/// A draft is weighed again whenever groups around it change.
void KernelGraph::measure(Draft &draft) {
  SmallVector<uintptr_t, 32> key{draft.members.size()};
  llvm::append_range(key, draft.members);
  for (Value result : draft.results)
    key.push_back(reinterpret_cast<uintptr_t>(result.getAsOpaquePointer()));
  StringRef bytes(reinterpret_cast<const char *>(key.data()),
                  key.size_in_bytes());
  auto [known, isNew] = analyses.try_emplace(bytes);
  if (isNew) {
    SmallVector<Operation *, 16> list;
    for (OpId op : draft.members)
      list.push_back(ops[op]);
    known->second = analyzeRegion(list, draft.results, model);
  }
  draft.analysis = known->second;
  if (draft)
    draft.microseconds =
        getMicroseconds(draft.analysis.region->work, model.getMachine());
}

static SmallVector<OpId> unite(ArrayRef<OpId> lhs, ArrayRef<OpId> rhs) {
  SmallVector<OpId> both;
  std::set_union(lhs.begin(), lhs.end(), rhs.begin(), rhs.end(),
                 std::back_inserter(both));
  return both;
}

Draft KernelGraph::draftMerge(GroupId first, GroupId second) {
  SmallVector<OpId> members =
      first == second ? unite(groups[first].members, {})
                      : unite(groups[first].members, groups[second].members);
  return analyze(members, first, second, kMaxMembers);
}

Draft KernelGraph::draftCopy(ArrayRef<OpId> copied, GroupId reader) {
  SmallVector<OpId> members = unite(copied, groups[reader].members);
  // A kernel with as many ops as a merge gives may still compute, once, what
  // would be stored for it.
  bool hasRoom = groups[reader].members.size() <= kMaxMembers;
  return analyze(members, reader, reader,
                 kMaxMembers + (hasRoom ? copied.size() : 0));
}

SmallVector<OpId> KernelGraph::collect(GroupId group, ArrayRef<Value> results,
                                       ArrayRef<Value> stops) const {
  llvm::SetVector<OpId> found;
  auto add = [&](Value value) {
    Value source = getSource(value);
    auto it = ids.find(source.getDefiningOp());
    if (it != ids.end() && holds(group, it->second) &&
        !llvm::is_contained(stops, source))
      found.insert(it->second);
  };
  llvm::for_each(results, add);
  for (unsigned i = 0; i < found.size(); ++i)
    llvm::for_each(ops[found[i]]->getOperands(), add);
  SmallVector<OpId> members = found.takeVector();
  llvm::sort(members);
  return members;
}

/// The results of `group` but for `value`.
static SmallVector<Value> getOthers(const Group &group, Value value) {
  return llvm::to_vector(llvm::make_filter_range(
      group.results, [&](Value result) { return result != value; }));
}

Draft KernelGraph::draftWithout(GroupId group, Value result) {
  Draft draft;
  draft.results = getOthers(groups[group], result);
  draft.members = collect(group, draft.results, {});
  measure(draft);
  return draft;
}

SmallVector<OpId> KernelGraph::getSlice(GroupId group, Value value) const {
  SmallVector<OpId> slice =
      collect(group, value, getOthers(groups[group], value));
  if (llvm::any_of(slice,
                   [&](OpId op) { return isa<KernelOpInterface>(ops[op]); }))
    slice.clear();
  return slice;
}

SmallVector<GroupId> KernelGraph::getReaders(GroupId group, Value value) const {
  llvm::SmallSetVector<GroupId, 4> found;
  OpId op = ids.lookup(value.getDefiningOp());
  if (auto it = readers.find(value); it != readers.end())
    for (OpId reader : it->second)
      for (GroupId other : groupsOf[reader])
        if (other != group && !holds(other, op))
          found.insert(other);
  return found.takeVector();
}

std::optional<llvm::DenseSet<GroupId>>
KernelGraph::findBetween(GroupId from, GroupId until) const {
  llvm::DenseSet<GroupId> found;
  SmallVector<GroupId> worklist{from};
  while (!worklist.empty()) {
    GroupId group = worklist.pop_back_val();
    for (GroupId consumer : getConsumers(group)) {
      if (consumer == until && group != from)
        return std::nullopt;
      if (groups[consumer].order >= groups[until].order ||
          !found.insert(consumer).second)
        continue;
      if (found.size() > kMaxSearch)
        return std::nullopt;
      worklist.push_back(consumer);
    }
  }
  return found;
}

bool KernelGraph::wouldCycle(GroupId first, GroupId second) const {
  if (groups[first].order > groups[second].order)
    std::swap(first, second);
  return !findBetween(first, second);
}

void KernelGraph::adopt(GroupId id, Draft draft) {
  Group &group = groups[id];
  group.members.assign(draft.members.begin(), draft.members.end());
  group.results = std::move(draft.results);
  group.microseconds = draft.microseconds;
  if (draft)
    group.region = std::move(*draft.analysis.region);
  ++group.version;
}

/// What depends on the earlier group moves behind the later one, where both
/// become one.
GroupId KernelGraph::merge(GroupId first, GroupId second, Draft draft) {
  if (groups[first].order > groups[second].order)
    std::swap(first, second);
  llvm::DenseSet<GroupId> behind = *findBetween(first, second);
  unsigned begin = groups[first].order, end = groups[second].order;
  SmallVector<int64_t> before, after;
  for (unsigned i = begin + 1; i < end; ++i)
    (order[i] >= 0 && behind.contains(order[i]) ? after : before)
        .push_back(order[i]);
  before.push_back(second);
  llvm::append_range(before, after);
  order[begin] = -1;
  for (auto [i, group] : llvm::enumerate(before)) {
    order[begin + 1 + i] = group;
    if (group >= 0)
      groups[group].order = begin + 1 + i;
  }
  for (OpId op : groups[first].members) {
    llvm::erase(groupsOf[op], first);
    if (!holds(second, op))
      groupsOf[op].push_back(second);
    if (homes[op] == int64_t(first))
      homes[op] = second;
  }
  groups[first].isAlive = false;
  ++groups[first].version;
  adopt(second, std::move(draft));
  return second;
}

void KernelGraph::copy(ArrayRef<OpId> copied, GroupId reader, Draft draft) {
  for (OpId op : copied)
    if (!holds(reader, op))
      groupsOf[op].push_back(reader);
  adopt(reader, std::move(draft));
}

void KernelGraph::leave(GroupId group, OpId op) {
  llvm::erase(groupsOf[op], group);
  if (homes[op] == int64_t(group))
    homes[op] = -1;
}

void KernelGraph::shrink(GroupId id, Draft draft) {
  for (OpId op : groups[id].members)
    if (!llvm::is_contained(draft.members, op))
      leave(id, op);
  adopt(id, std::move(draft));
}

void KernelGraph::remove(GroupId id) {
  Group &group = groups[id];
  for (OpId op : group.members)
    leave(id, op);
  group.isAlive = false;
  ++group.version;
  order[group.order] = -1;
}

SmallVector<GroupId> KernelGraph::getOrder() const {
  SmallVector<GroupId> alive;
  for (int64_t group : order)
    if (group >= 0)
      alive.push_back(group);
  return alive;
}

} // namespace tcc::fusion
