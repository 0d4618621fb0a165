#include "compiler/passes/graph/fusion/Partition.h"

#include <queue>

using namespace mlir;
using namespace tcc::graph;

namespace tcc::fusion {

/// Copies of one producer are weighed for this many readers at most.
static constexpr unsigned kMaxCopies = 16;
static constexpr unsigned kMaxCopiedOps = 16;
/// Savings below this are not worth a decision.
static constexpr double kMinSaving = 1e-3;
/// Nor are those below this part of the faster of two kernels: as one, they
/// have the values of both in memory at once.
static constexpr double kMinShare = 0.005;

namespace {

/// A step that saves `saving` microseconds: to merge two groups, or (where both
/// are the same) to copy one into its readers.
struct Candidate {
  /// What follows a contraction or window is merged first: pointwise ops can
  /// still join others later, these kernels take nothing else.
  bool isEpilogue;
  double saving;
  GroupId first, second;
  unsigned firstVersion, secondVersion;

  bool isCopy() const { return first == second; }
  /// Equal savings: the earlier groups first, so that results do not depend on
  /// the history.
  bool operator<(const Candidate &other) const {
    return std::tuple(isEpilogue, saving, other.first, other.second) <
           std::tuple(other.isEpilogue, other.saving, first, second);
  }
};

class Partitioner {
public:
  explicit Partitioner(KernelGraph &graph) : graph(graph) {}

  LogicalResult measureOps();
  void copyFreeOps();
  void run();
  void mergeScalars();

private:
  struct Copies {
    double saving = 0;
    bool isComplete = true;
    SmallVector<GroupId> readers;
  };

  bool isCandidate(GroupId group) const {
    return graph[group].isAlive && !graph[group].isFixed;
  }
  bool isEpilogue(GroupId first, GroupId second) const;
  double getMergeSaving(GroupId first, GroupId second, Draft &draft);
  Copies weighCopies(GroupId producer, bool isFree);
  void push(GroupId first, GroupId second);
  void pushCopies(GroupId producer);
  void pushAround(GroupId group);
  bool apply(const Candidate &candidate);
  bool unstore(GroupId group, Value result);
  void unstoreResults();
  void applyCopies(GroupId producer, const Copies &copies);
  bool isFinalScalar(GroupId group) const;

  KernelGraph &graph;
  std::priority_queue<Candidate> queue;
  bool hasChanged = false;
};

} // namespace

/// Each op by itself: what fusion starts from.
LogicalResult Partitioner::measureOps() {
  for (GroupId group = 0; group < graph.size(); ++group) {
    if (graph[group].isFixed)
      continue;
    Draft draft = graph.draftMerge(group, group);
    if (!draft)
      return graph.getOp(graph[group].members.front())
                 ->emitOpError("cannot be a kernel: ")
             << draft.analysis.refusal;
    graph.adopt(group, std::move(draft));
  }
  return success();
}

/// An op that only repeats elements, or makes them from indices.
static bool isFree(Operation *op, CostModel &model) {
  if (!isa<ElementOpInterface>(op))
    return false;
  double read = 0;
  for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
    if (!getReadMap(op, i))
      return false;
    read += model.getMaxCount(operand.getType());
  }
  return 2 * read <= model.getMaxCount(op->getResult(0).getType()) ||
         op->getNumOperands() == 0;
}

void Partitioner::copyFreeOps() {
  for (GroupId group = 0; group < graph.size(); ++group)
    if (isCandidate(group) && llvm::all_of(graph[group].members, [&](OpId op) {
          return isFree(graph.getOp(op), graph.getModel());
        }))
      applyCopies(group, weighCopies(group, /*isFree=*/true));
}

/// Bits of the widest element that a group stores.
static unsigned getWidth(const KernelGraph &graph, GroupId group) {
  unsigned width = 0;
  for (Value value : graph[group].results)
    width = std::max(
        width, getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth());
  return width;
}

/// True for a kernel that pointwise ops may follow, and that is no row kernel.
static bool takesEpilogue(const Group &group) {
  return group.region.anchor && group.region.kind != KernelKind::row;
}

/// What widens elements may do better before their reader, a sum for instance.
/// What follows several products is part of the last one, so that the first
/// need not wait: of a sum of many, two are in memory at once.
bool Partitioner::isEpilogue(GroupId first, GroupId second) const {
  if (!takesEpilogue(graph[first]) || graph[second].region.anchor ||
      getWidth(graph, second) > getWidth(graph, first))
    return false;
  return llvm::none_of(graph.getProducers(second), [&](GroupId other) {
    return takesEpilogue(graph[other]) &&
           graph[other].order > graph[first].order;
  });
}

static double getBytes(const Region &region) {
  return region.work.bytesRead + region.work.bytesWritten;
}

double Partitioner::getMergeSaving(GroupId first, GroupId second,
                                   Draft &draft) {
  draft = graph.draftMerge(first, second);
  if (!draft)
    return 0;
  const Machine &machine = graph.getModel().getMachine();
  double before = graph[first].microseconds, after = graph[second].microseconds;
  double bytes = getBytes(graph[first].region) +
                 getBytes(graph[second].region) -
                 getBytes(*draft.analysis.region);
  double moved =
      bytes / machine.bytesPerMicrosecond + machine.launchMicroseconds;
  if (moved < kMinShare * std::min(before, after))
    return 0;
  return before + after - draft.microseconds;
}

/// If every reader can compute the producer's values itself, the producer
/// vanishes; else those readers for which that is faster than reading them.
Partitioner::Copies Partitioner::weighCopies(GroupId producer, bool isFree) {
  Copies copies;
  double total = 0;
  Copies gaining;
  for (GroupId reader : graph.getConsumers(producer)) {
    Draft draft;
    if (!graph[reader].isFixed)
      draft = graph.draftCopy(graph[producer].members, reader);
    if (!draft) {
      copies.isComplete = false;
      continue;
    }
    double saving = graph[reader].microseconds - draft.microseconds;
    total += saving;
    copies.readers.push_back(reader);
    if (saving <= kMinSaving)
      continue;
    gaining.saving += saving;
    gaining.readers.push_back(reader);
  }
  copies.saving =
      total + (copies.isComplete ? graph[producer].microseconds : 0);
  if (isFree || (copies.isComplete && copies.saving > gaining.saving))
    return copies;
  gaining.isComplete =
      copies.isComplete && gaining.readers.size() == copies.readers.size();
  return gaining;
}

void Partitioner::applyCopies(GroupId producer, const Copies &copies) {
  ArrayRef<OpId> copied = graph[producer].members;
  for (GroupId reader : copies.readers)
    graph.copy(copied, reader, graph.draftCopy(copied, reader));
  if (copies.isComplete && !copies.readers.empty())
    graph.remove(producer);
}

void Partitioner::push(GroupId first, GroupId second) {
  if (!isCandidate(first) || !isCandidate(second))
    return;
  Draft draft;
  double saving = getMergeSaving(first, second, draft);
  if (saving > kMinSaving)
    queue.push({isEpilogue(first, second), saving, first, second,
                graph[first].version, graph[second].version});
}

void Partitioner::pushCopies(GroupId producer) {
  if (!isCandidate(producer) || graph[producer].region.anchor ||
      graph[producer].members.size() > kMaxCopiedOps)
    return;
  unsigned readers = graph.getConsumers(producer, kMaxCopies + 1).size();
  if (readers < 2 || readers > kMaxCopies)
    return;
  double saving = weighCopies(producer, /*isFree=*/false).saving;
  if (saving > kMinSaving)
    queue.push({false, saving, producer, producer, graph[producer].version,
                graph[producer].version});
}

void Partitioner::pushAround(GroupId group) {
  for (GroupId producer : graph.getProducers(group)) {
    push(producer, group);
    pushCopies(producer);
  }
  for (GroupId consumer : graph.getConsumers(group))
    push(group, consumer);
  for (GroupId sibling : graph.getSiblings(group))
    push(group, sibling);
  pushCopies(group);
}

/// Weighs the step again, as groups around it may have changed; takes it if it
/// saves what it promised.
bool Partitioner::apply(const Candidate &candidate) {
  auto [isFirst, saving, first, second, firstVersion, secondVersion] =
      candidate;
  if (graph[first].version != firstVersion ||
      graph[second].version != secondVersion)
    return false;
  Draft draft;
  Copies copies;
  double now;
  if (candidate.isCopy()) {
    copies = weighCopies(first, /*isFree=*/false);
    now = copies.saving;
  } else {
    now = getMergeSaving(first, second, draft);
  }
  if (now < saving - kMinSaving) {
    if (now > kMinSaving)
      queue.push({isFirst, now, first, second, firstVersion, secondVersion});
    return false;
  }
  if (candidate.isCopy()) {
    applyCopies(first, copies);
    for (GroupId reader : copies.readers)
      pushAround(reader);
    return true;
  }
  if (graph.wouldCycle(first, second))
    return false;
  pushAround(graph.merge(first, second, std::move(draft)));
  return true;
}

/// Lets all readers of a result make it themselves of what its group reads and
/// stores, if that is faster.
bool Partitioner::unstore(GroupId group, Value result) {
  SmallVector<OpId> slice = graph.getSlice(group, result);
  SmallVector<GroupId> readers = graph.getReaders(group, result);
  if (slice.empty() || slice.size() > kMaxCopiedOps || readers.empty() ||
      readers.size() > kMaxCopies)
    return false;
  Draft rest = graph.draftWithout(group, result);
  if (!rest)
    return false;
  double saving = graph[group].microseconds - rest.microseconds;
  SmallVector<Draft, 0> drafts;
  for (GroupId reader : readers) {
    Draft &draft = drafts.emplace_back();
    if (!graph[reader].isFixed)
      draft = graph.draftCopy(slice, reader);
    if (!draft)
      return false;
    saving += graph[reader].microseconds - draft.microseconds;
  }
  if (saving <= kMinSaving)
    return false;
  for (auto [reader, draft] : llvm::zip_equal(readers, drafts))
    graph.copy(slice, reader, std::move(draft));
  graph.shrink(group, std::move(rest));
  return true;
}

void Partitioner::unstoreResults() {
  for (GroupId group : graph.getOrder()) {
    if (!isCandidate(group) || graph[group].results.size() < 2)
      continue;
    SmallVector<Value, 2> results = graph[group].results;
    for (Value result : results)
      hasChanged |= unstore(group, result);
  }
}

void Partitioner::run() {
  do {
    hasChanged = false;
    for (GroupId group = 0; group < graph.size(); ++group)
      if (isCandidate(group))
        pushAround(group);
    while (!queue.empty()) {
      Candidate candidate = queue.top();
      queue.pop();
      hasChanged |= apply(candidate);
    }
    unstoreResults();
  } while (hasChanged);
}

/// True for a kernel that runs once, over one element or one row.
static bool runsOnce(const Group &group) {
  const Region &region = group.region;
  if (!region.space || takesEpilogue(group))
    return false;
  return llvm::all_of(llvm::seq<int64_t>(region.space.getRank()),
                      [&](int64_t axis) {
                        return region.space.getDimSize(axis) == 1 ||
                               llvm::is_contained(region.reducedAxes, axis);
                      });
}

/// True for a kernel of one element whose results only the block's end reads.
bool Partitioner::isFinalScalar(GroupId group) const {
  const Region &region = graph[group].region;
  if (region.anchor || !region.space ||
      graph.getModel().getMaxCount(region.space) != 1)
    return false;
  SmallVector<GroupId> readers = graph.getConsumers(group, 2);
  return llvm::all_of(readers, [&](GroupId reader) {
    Operation *op = graph.getOp(graph[reader].members.front());
    return op->hasTrait<OpTrait::IsTerminator>();
  });
}

/// Kernels of one element cost their launches alone. One that nothing reads
/// here takes no memory either: it is one with the last kernel before it that
/// runs once, or the next one, whatever they read.
void Partitioner::mergeScalars() {
  std::optional<GroupId> last;
  for (GroupId group : graph.getOrder()) {
    if (!isCandidate(group) || !runsOnce(graph[group]))
      continue;
    Draft draft;
    if (last && (isFinalScalar(*last) || isFinalScalar(group)) &&
        getMergeSaving(*last, group, draft) > kMinSaving &&
        !graph.wouldCycle(*last, group))
      group = graph.merge(*last, group, std::move(draft));
    last = group;
  }
}

LogicalResult choosePartition(KernelGraph &graph) {
  Partitioner partitioner(graph);
  if (failed(partitioner.measureOps()))
    return failure();
  partitioner.copyFreeOps();
  partitioner.run();
  partitioner.mergeScalars();
  return success();
}

/// The op that the kernel of `group` is named after.
static Operation *getNamedOp(KernelGraph &graph, GroupId group) {
  Operation *anchor = graph[group].region.anchor;
  return anchor ? anchor : graph.getOp(graph[group].members.back());
}

/// Bytes of the results of `producer` that `consumer` reads.
static double getBytesBetween(KernelGraph &graph, GroupId producer,
                              GroupId consumer) {
  llvm::SmallDenseSet<Value> read;
  for (OpId op : graph[consumer].members)
    graph.getOp(op)->walk([&](Operation *nested) {
      for (Value operand : nested->getOperands())
        read.insert(getSource(operand));
    });
  double bytes = 0;
  for (Value value : graph[producer].results)
    if (read.contains(value))
      bytes += graph.getModel().getMaxBytes(value.getType());
  return bytes;
}

static Refusal explain(KernelGraph &graph, GroupId producer, GroupId consumer) {
  Draft draft = graph.draftMerge(producer, consumer);
  Refusal refusal{getNamedOp(graph, producer),
                  getNamedOp(graph, consumer),
                  draft.analysis.refusal,
                  getBytesBetween(graph, producer, consumer),
                  graph[producer].microseconds + graph[consumer].microseconds,
                  draft.microseconds};
  if (draft)
    refusal.reason = graph.wouldCycle(producer, consumer)
                         ? "another kernel lies between"
                         : "it would not be faster";
  return refusal;
}

std::vector<Refusal> explainPartition(KernelGraph &graph) {
  std::vector<Refusal> refusals;
  for (GroupId producer : graph.getOrder()) {
    if (graph[producer].isFixed)
      continue;
    for (GroupId consumer : graph.getConsumers(producer))
      if (!graph[consumer].isFixed)
        refusals.push_back(explain(graph, producer, consumer));
  }
  return refusals;
}

} // namespace tcc::fusion
