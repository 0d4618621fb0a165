#include "compiler/passes/exec/recompute/Frontier.h"

#include "dialects/exec/KernelHash.h"

#include "llvm/ADT/MapVector.h"
#include <map>

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

/// The choices, of all that were simulated, that no other one beats.
class Front {
public:
  void add(const Choice &choice, int64_t peak, double microseconds);
  /// In the order of time.
  std::vector<FrontierPoint> take(size_t most);

private:
  std::map<int64_t, FrontierPoint> points; ///< by peak; time falls as it rises
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

/// How a search goes.
struct Mode {
  bool holds;
  bool isAlone; ///< each value is a group of its own
};

/// Drops values step by step.
class Search {
public:
  Search(const Trace &trace, Mode mode, Front &front);
  void run();

private:
  void findGroups(int64_t leastBytes);
  void setDropped(Group &group, unsigned count);
  std::optional<Outcome> evaluate();
  void findExcess();
  FrontierStep findStep(Group &group);
  bool takeStep();
  bool reachTarget(double mostMicroseconds);
  void trim();
  void improve(int64_t steps);
  bool tryMove(Group &group, int change);
  std::vector<unsigned> getCounts() const;
  bool canHelp(const Group &group) const;

  const Trace &trace;
  const Mode mode;
  Front &front;
  Simulation simulation;
  int64_t simulated = 0; ///< steps of all simulations
  Choice choice;
  std::vector<Group> groups;
  const Group *fixed = nullptr; ///< stays as it is for now
  int64_t target = 0;
  Outcome now = {};
  CommandId excessBegin = 0, excessEnd = 0; ///< commands above the target
};

} // namespace

void Front::add(const Choice &choice, int64_t peak, double microseconds) {
  auto after = points.upper_bound(peak);
  if (after != points.begin() &&
      std::prev(after)->second.microseconds <= microseconds)
    return;
  auto first = points.lower_bound(peak), last = first;
  while (last != points.end() && last->second.microseconds >= microseconds)
    ++last;
  points.erase(first, last);
  points.emplace(peak, FrontierPoint{choice, peak, microseconds});
}

/// Takes the fastest of the points whose peaks are about the same.
std::vector<FrontierPoint> Front::take(size_t most) {
  std::vector<FrontierPoint> taken;
  int64_t least = points.begin()->first, apart = 0;
  for (auto &[peak, point] : llvm::reverse(points))
    if (taken.empty() || peak == least || peak <= taken.back().peak - apart) {
      taken.push_back(std::move(point));
      apart = taken.front().peak / int64_t(most);
    }
  return taken;
}

Search::Search(const Trace &trace, Mode mode, Front &front)
    : trace(trace), mode(mode), front(front), simulation(trace) {
  choice.isDropped.assign(trace.values.size(), false);
  choice.holds = mode.holds;
}

void Search::findGroups(int64_t leastBytes) {
  constexpr CommandId kShortestGap = 2;
  using Key = std::tuple<std::string, unsigned, unsigned, ValueId>;
  llvm::MapVector<Key, Group, std::map<Key, unsigned>> byKey;
  llvm::DenseMap<CommandId, std::string> hashes;
  for (auto [id, value] : llvm::enumerate(trace.values)) {
    CommandId gap = value.gapEnd - value.gapBegin;
    if (value.unit == kNone || value.bytes < leastBytes || gap < kShortestGap)
      continue;
    bool isUnread = value.gapBegin == value.writer;
    auto [hash, isNew] = hashes.try_emplace(value.writer);
    if (isNew)
      hash->second = hashOf(trace.commands[value.writer].kernel);
    byKey[{hash->second, value.result, isUnread, mode.isAlone ? id : 0}]
        .values.push_back(id);
  }
  for (auto &[key, group] : byKey) {
    llvm::sort(group.values, [&](ValueId a, ValueId b) {
      auto getGap = [&](ValueId value) {
        return trace.values[value].gapEnd - trace.values[value].gapBegin;
      };
      return std::pair(getGap(b), a) < std::pair(getGap(a), b);
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
  bool ok = simulation.run(choice);
  simulated += simulation.getSteps().size();
  if (!ok)
    return std::nullopt;
  double microseconds = simulation.getMicroseconds();
  front.add(choice, simulation.getPeak(), microseconds);
  return Outcome{microseconds, simulation.getExcess(target)};
}

/// True if the next value to be dropped is in memory, unread, while there is
/// too much.
bool Search::canHelp(const Group &group) const {
  if (group.dropped == group.values.size() || &group == fixed)
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
  llvm::sort(byRate, [](const Group *a, const Group *b) {
    return std::pair(a->rate, a) < std::pair(b->rate, b);
  });
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

/// False if there is no way to the target, or none in less time.
bool Search::reachTarget(double mostMicroseconds) {
  for (Group &group : groups)
    group.rate = 0;
  while (now.excess > 0)
    if (now.microseconds >= mostMicroseconds || !takeStep())
      return false;
  return now.microseconds < mostMicroseconds;
}

/// Keeps again what the target has room for.
void Search::trim() {
  for (Group &group : llvm::reverse(groups))
    while (group.dropped > 0 && &group != fixed) {
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

std::vector<unsigned> Search::getCounts() const {
  std::vector<unsigned> counts;
  for (const Group &group : groups)
    counts.push_back(group.dropped);
  return counts;
}

/// Drops one more of a group, or one less, and finds the way to the target from
/// there. Goes back if that takes no less time.
bool Search::tryMove(Group &group, int change) {
  if (change < 0 ? group.dropped == 0 : group.dropped == group.values.size())
    return false;
  std::vector<unsigned> counts = getCounts();
  Outcome before = now;
  setDropped(group, group.dropped + change);
  fixed = &group;
  std::optional<Outcome> outcome = evaluate();
  now = outcome.value_or(before);
  // One that is dropped in vain may let others be kept.
  double most = change < 0 ? before.microseconds : INFINITY;
  bool isBetter = outcome && reachTarget(most);
  if (isBetter) {
    trim();
    isBetter = now.microseconds < before.microseconds;
  }
  fixed = nullptr;
  if (isBetter)
    return true;
  // What cannot be made again is of no group any more, and was not dropped.
  for (auto [each, count] : llvm::zip(groups, counts))
    setDropped(each, count);
  now = before;
  return false;
}

/// Moves to neighbours that take less time, until there are none or `steps` are
/// simulated.
void Search::improve(int64_t steps) {
  int64_t end = simulated + steps;
  for (bool isBetter = true; isBetter;) {
    isBetter = false;
    for (Group &group : groups)
      for (int change : {-1, 1}) {
        if (simulated >= end)
          return;
        isBetter |= tryMove(group, change);
      }
  }
}

void Search::run() {
  constexpr int kTargets = 40, kSmallest = 4096;
  constexpr int64_t kSteps = 100'000; ///< for improvements at each target
  if (!evaluate())
    return;
  int64_t peak = simulation.getPeak();
  findGroups(peak / kSmallest);
  for (int i = 1; i < kTargets; ++i) {
    target = peak / kTargets * (kTargets - i);
    std::optional<Outcome> outcome = evaluate();
    if (!outcome)
      return;
    now = *outcome;
    if (!reachTarget(INFINITY))
      return;
    trim();
    improve(kSteps);
  }
}

std::vector<FrontierPoint> findFrontier(const Trace &trace) {
  constexpr size_t kFew = 64;
  // Each may be planned as a whole, which takes long where there is much.
  constexpr size_t kMost = 1000, kLeast = 64, kPlanned = 200'000;
  Front front;
  for (bool isAlone : {false, true})
    for (bool holds : {true, false})
      if (!isAlone || trace.values.size() <= kFew)
        Search(trace, {holds, isAlone}, front).run();
  return front.take(
      std::clamp(kPlanned / (trace.commands.size() + 1), kLeast, kMost));
}

} // namespace tcc::exec
