#include "compiler/passes/exec/recompute/Frontier.h"

#include "compiler/passes/exec/KernelHash.h"

#include "llvm/ADT/MapVector.h"

using namespace mlir;

namespace tcc::exec {

namespace {

/// Values that are the same result of equal computations: one in each repeated
/// block. Those that nothing reads for longest are dropped first.
struct Group {
  SmallVector<ValueId> values;
  unsigned dropped = 0;
  /// What more of it cost last, in microseconds for a byte less over a command;
  /// only worth asking again once it is the cheapest.
  double rate = 0;
};

/// What a choice comes to against a target.
struct Outcome {
  double microseconds, excess;
};

/// More of one group that is dropped.
struct FrontierStep {
  Group *group = nullptr;
  unsigned dropped = 0;
  Outcome outcome = {};
  double rate = INFINITY;
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
  void findExcess();
  FrontierStep findStep(Group &group);
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

Search::Search(const Trace &trace, bool holds)
    : trace(trace), simulation(trace) {
  choice.isDropped.assign(trace.values.size(), false);
  choice.holds = holds;
}

void Search::findGroups(int64_t leastBytes) {
  constexpr CommandId kShortestGap = 2;
  llvm::MapVector<std::tuple<size_t, unsigned, unsigned>, Group> byKey;
  llvm::DenseMap<CommandId, size_t> hashes;
  for (auto [id, value] : llvm::enumerate(trace.values)) {
    CommandId gap = value.gapEnd - value.gapBegin;
    if (value.unit == kNone || value.bytes < leastBytes || gap < kShortestGap)
      continue;
    bool isUnread = value.gapBegin == value.writer;
    auto [hash, isNew] = hashes.try_emplace(value.writer);
    if (isNew)
      hash->second = hashOf(trace.commands[value.writer].kernel);
    byKey[{hash->second, value.result, isUnread}].values.push_back(id);
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

void Search::findExcess() {
  excessBegin = kNone;
  for (auto [step, bytes] :
       llvm::zip(simulation.getSteps(), simulation.getLive()))
    if (!step.isUnit && bytes > target) {
      excessBegin = std::min(excessBegin, step.id);
      excessEnd = step.id;
    }
}

/// The cheapest way to drop more of `group`; none if that helps nothing.
FrontierStep Search::findStep(Group &group) {
  FrontierStep best;
  unsigned before = group.dropped;
  auto consider = [&](unsigned count) {
    setDropped(group, before + count);
    std::optional<Outcome> outcome = evaluate();
    if (outcome && outcome->excess < now.excess) {
      double cost = std::max(0.0, outcome->microseconds - now.microseconds);
      double rate = cost / (now.excess - outcome->excess);
      if (std::pair(rate, outcome->excess) <
          std::pair(best.rate, best.outcome.excess))
        best = {&group, before + count, *outcome, rate};
    }
    setDropped(group, before);
    return outcome.has_value();
  };
  // What cannot be made again must not keep the others of its group.
  while (canHelp(group) && !consider(1))
    group.values.erase(group.values.begin() + before);
  unsigned left = group.values.size() - before;
  if (unsigned quarter = std::max(2u, left / 4); canHelp(group) && left > 1) {
    consider(quarter);
    if (left > quarter)
      consider(left);
  }
  group.rate = best.rate;
  return best;
}

/// Drops more of one group: what costs least for the bytes that it saves. A
/// group seldom becomes cheaper, so that those whose last rate was higher than
/// the best are not asked.
bool Search::takeStep() {
  if (!simulation.run(choice))
    return false;
  findExcess();
  llvm::SmallVector<Group *> byRate;
  for (Group &group : groups)
    byRate.push_back(&group);
  llvm::stable_sort(
      byRate, [](const Group *a, const Group *b) { return a->rate < b->rate; });
  FrontierStep best;
  for (Group *group : byRate) {
    if (group->rate > best.rate)
      break;
    if (!canHelp(*group))
      continue;
    FrontierStep step = findStep(*group);
    if (step.group && std::pair(step.rate, step.outcome.excess) <
                          std::pair(best.rate, best.outcome.excess))
      best = step;
  }
  if (!best.group)
    return false;
  setDropped(*best.group, best.dropped);
  now = best.outcome;
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
    for (Group &group : groups)
      group.rate = 0;
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
