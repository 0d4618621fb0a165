#include "compiler/passes/exec/recompute/Frontier.h"

#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tcc::exec {

namespace {

/// Values that are the same result of equal computations: one in each repeated
/// block. Those that nothing reads for longest are dropped first.
struct Group {
  SmallVector<ValueId> values;
  unsigned dropped = 0;
};

/// What a choice comes to against a target.
struct Outcome {
  double microseconds, excess;
};

/// Drops values step by step.
class Search {
public:
  Search(const Trace &trace, bool holds);
  /// Adds what it finds.
  void run(std::vector<FrontierPoint> &points);

private:
  void findGroups(int64_t leastBytes);
  void setDropped(Group &group, unsigned count);
  std::optional<Outcome> evaluate();
  bool takeStep();
  void trim();
  bool canHelp(const Group &group) const;
  void record(std::vector<FrontierPoint> &points);

  const Trace &trace;
  Simulation simulation;
  Choice choice;
  std::vector<Group> groups;
  int64_t target = 0;
  Outcome now = {};
  CommandId excessBegin = 0, excessEnd = 0; ///< commands above the target
};

} // namespace

/// Equal for equal computations, whatever their places.
static llvm::hash_code hashOf(Operation *computation) {
  constexpr auto kFlags = OperationEquivalence::IgnoreLocations;
  llvm::hash_code hash(0);
  computation->walk([&](Operation *op) {
    hash = llvm::hash_combine(
        hash, OperationEquivalence::computeHash(
                  op, OperationEquivalence::ignoreHashValue,
                  OperationEquivalence::ignoreHashValue, kFlags));
  });
  return hash;
}

Search::Search(const Trace &trace, bool holds)
    : trace(trace), simulation(trace) {
  choice.isDropped.assign(trace.values.size(), false);
  choice.holds = holds;
}

void Search::findGroups(int64_t leastBytes) {
  constexpr CommandId kShortestGap = 2;
  llvm::MapVector<std::tuple<size_t, unsigned, unsigned>, Group> byKey;
  for (auto [id, value] : llvm::enumerate(trace.values)) {
    CommandId gap = value.gapEnd - value.gapBegin;
    if (value.unit == kNone || value.bytes < leastBytes || gap < kShortestGap)
      continue;
    bool isUnread = value.gapBegin == value.writer;
    byKey[{hashOf(trace.commands[value.writer].getComputation()), value.result,
           isUnread}]
        .values.push_back(id);
  }
  for (auto &[key, group] : byKey) {
    llvm::stable_sort(group.values, [&](ValueId a, ValueId b) {
      auto getGap = [&](ValueId value) {
        return trace.values[value].gapEnd - trace.values[value].gapBegin;
      };
      return getGap(a) > getGap(b);
    });
    groups.push_back(std::move(group));
  }
}

void Search::setDropped(Group &group, unsigned count) {
  for (auto [i, value] : llvm::enumerate(group.values))
    choice.isDropped[value] = i < count;
  group.dropped = count;
}

/// Nothing if a value could not be made again.
std::optional<Outcome> Search::evaluate() {
  if (!simulation.run(choice))
    return std::nullopt;
  return Outcome{simulation.getMicroseconds(), simulation.getExcess(target)};
}

/// True if the next value to be dropped is in memory, unread, while there is
/// too much.
bool Search::canHelp(const Group &group) const {
  if (group.dropped == group.values.size())
    return false;
  const TracedValue &value = trace.values[group.values[group.dropped]];
  return value.gapBegin < excessEnd && value.gapEnd > excessBegin;
}

/// Drops more of one group: what costs least for the bytes that it saves.
bool Search::takeStep() {
  if (!simulation.run(choice))
    return false;
  excessBegin = kNone;
  for (auto [step, bytes] :
       llvm::zip(simulation.getSteps(), simulation.getLive()))
    if (!step.isUnit && bytes > target) {
      excessBegin = std::min(excessBegin, step.id);
      excessEnd = step.id;
    }
  Group *best = nullptr;
  unsigned bestCount = 0;
  std::optional<Outcome> bestOutcome;
  auto getRate = [&](const Outcome &outcome) {
    double cost = std::max(0.0, outcome.microseconds - now.microseconds);
    return std::pair(cost / (now.excess - outcome.excess), outcome.excess);
  };
  for (Group &group : groups) {
    if (!canHelp(group))
      continue;
    unsigned before = group.dropped, left = group.values.size() - before;
    for (unsigned count : {1u, std::max(2u, left / 4), left}) {
      if (count > left || (count == left && count != 1 && left < 2))
        continue;
      setDropped(group, before + count);
      std::optional<Outcome> outcome = evaluate();
      if (outcome && outcome->excess < now.excess &&
          (!bestOutcome || getRate(*outcome) < getRate(*bestOutcome))) {
        best = &group;
        bestCount = before + count;
        bestOutcome = outcome;
      }
    }
    setDropped(group, before);
  }
  if (!best)
    return false;
  setDropped(*best, bestCount);
  now = *bestOutcome;
  return true;
}

/// Keeps again what the target has room for.
void Search::trim() {
  for (Group &group : llvm::reverse(groups))
    while (group.dropped > 0) {
      unsigned before = group.dropped;
      setDropped(group, before - 1);
      std::optional<Outcome> outcome = evaluate();
      if (outcome && outcome->excess == 0 &&
          outcome->microseconds <= now.microseconds) {
        now = *outcome;
        continue;
      }
      setDropped(group, before);
      break;
    }
}

void Search::record(std::vector<FrontierPoint> &points) {
  if (simulation.run(choice))
    points.push_back(
        {choice, simulation.getPeak(), simulation.getMicroseconds()});
}

void Search::run(std::vector<FrontierPoint> &points) {
  constexpr int kTargets = 40, kSmallest = 4096;
  if (!simulation.run(choice))
    return;
  record(points);
  int64_t peak = points.back().peak;
  findGroups(peak / kSmallest);
  for (int i = 1; i < kTargets; ++i) {
    target = peak / kTargets * (kTargets - i);
    std::optional<Outcome> outcome = evaluate();
    if (!outcome)
      return;
    now = *outcome;
    while (now.excess > 0)
      if (!takeStep()) {
        record(points);
        return;
      }
    trim();
    record(points);
  }
}

std::vector<FrontierPoint> findFrontier(const Trace &trace) {
  std::vector<FrontierPoint> points, frontier;
  for (bool holds : {true, false})
    Search(trace, holds).run(points);
  // The smaller peak first of equal times, then those that no other one beats.
  llvm::stable_sort(points, [](const FrontierPoint &a, const FrontierPoint &b) {
    return std::pair(a.microseconds, a.peak) <
           std::pair(b.microseconds, b.peak);
  });
  for (FrontierPoint &point : points)
    if (frontier.empty() || point.peak < frontier.back().peak)
      frontier.push_back(std::move(point));
  return frontier;
}

} // namespace tcc::exec
