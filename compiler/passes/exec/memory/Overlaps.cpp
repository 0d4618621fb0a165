#include "compiler/passes/exec/memory/Overlaps.h"

#include "llvm/ADT/STLExtras.h"
#include <cmath>
#include <random>

namespace tcc::exec {

namespace {

/// Two allocations that are live at the same time.
struct Pair {
  unsigned first, second;
  int64_t unit, weight;
};

/// Where the cost of an offset begins to rise by another slope.
struct Kink {
  int64_t offset, change;
};

class Mover {
public:
  Mover(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
        std::vector<int64_t> &offsets, int64_t &steps);

  bool run();

private:
  void settle();
  void moveToLeast(unsigned item);
  void moveTo(unsigned item, int64_t offset);
  int64_t getCost(unsigned item) const;
  int64_t findLeast(unsigned item, int64_t &least);
  void collectKinks(unsigned item);
  void addWeight();
  void wake(unsigned item);

  int64_t getOverlap(const Pair &pair) const {
    int64_t bottom = std::max(offsets[pair.first], offsets[pair.second]);
    int64_t top =
        std::min(offsets[pair.first] + allocations[pair.first].bytes,
                 offsets[pair.second] + allocations[pair.second].bytes);
    return std::max<int64_t>(0, top - bottom);
  }
  unsigned getOther(const Pair &pair, unsigned item) const {
    return pair.first == item ? pair.second : pair.first;
  }

  llvm::ArrayRef<Allocation> allocations;
  int64_t capacity;
  std::vector<int64_t> &offsets;
  int64_t &steps;
  std::vector<Pair> pairs;
  std::vector<std::vector<unsigned>> pairsOf; ///< of each allocation
  std::vector<unsigned> overlapping;          ///< pairs, of each allocation
  std::vector<unsigned> awake;                ///< may have a better place
  std::vector<bool> isAwake;
  std::vector<Kink> kinks;
  std::minstd_rand random{1}; // its numbers are the same everywhere
};

} // namespace

/// What a byte weighs: large ones have more of them to overlap with, but must
/// find their places first.
static int64_t getUnit(const Allocation &a, const Allocation &b) {
  constexpr double kMost = 1 << 14;
  double bytes = double(std::min(a.bytes, b.bytes));
  return std::max<int64_t>(1, kMost / std::sqrt(bytes / kArenaAlignment));
}

Mover::Mover(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
             std::vector<int64_t> &offsets, int64_t &steps)
    : allocations(allocations), capacity(capacity), offsets(offsets),
      steps(steps), pairsOf(allocations.size()),
      overlapping(allocations.size()), isAwake(allocations.size()) {
  for (auto [i, allocation] : llvm::enumerate(allocations))
    offsets[i] = std::min(offsets[i], capacity - allocation.bytes);
  for (unsigned i = 0; i < allocations.size(); ++i)
    for (unsigned j = 0; j < i; ++j) {
      const Allocation &a = allocations[i], &b = allocations[j];
      if (a.begin > b.end || b.begin > a.end)
        continue;
      pairsOf[i].push_back(pairs.size());
      pairsOf[j].push_back(pairs.size());
      int64_t unit = getUnit(a, b);
      pairs.push_back({i, j, unit, unit});
      if (getOverlap(pairs.back()) == 0)
        continue;
      ++overlapping[i];
      ++overlapping[j];
    }
  steps -= int64_t(allocations.size() * allocations.size());
}

void Mover::wake(unsigned item) {
  if (!isAwake[item])
    awake.push_back(item);
  isAwake[item] = true;
}

int64_t Mover::getCost(unsigned item) const {
  int64_t cost = 0;
  for (unsigned pair : pairsOf[item])
    cost += pairs[pair].weight * getOverlap(pairs[pair]);
  return cost;
}

/// Over the offsets of `item`, the bytes that it shares with another one rise,
/// stay and fall.
void Mover::collectKinks(unsigned item) {
  int64_t bytes = allocations[item].bytes;
  kinks.clear();
  kinks.push_back({0, 0});
  kinks.push_back({capacity - bytes, 0});
  for (unsigned index : pairsOf[item]) {
    const Pair &pair = pairs[index];
    unsigned other = getOther(pair, item);
    int64_t end = offsets[other] + allocations[other].bytes;
    int64_t begin = offsets[other] - bytes;
    int64_t most = std::min(bytes, allocations[other].bytes);
    kinks.push_back({begin, pair.weight});
    kinks.push_back({begin + most, -pair.weight});
    kinks.push_back({end - most, -pair.weight});
    kinks.push_back({end, pair.weight});
  }
  llvm::sort(kinks, [](const Kink &a, const Kink &b) {
    return std::pair(a.offset, a.change) < std::pair(b.offset, b.change);
  });
}

/// One of the other offsets where `item` costs least, at random.
int64_t Mover::findLeast(unsigned item, int64_t &least) {
  collectKinks(item);
  int64_t cost = 0, slope = 0, at = kinks.front().offset, found = -1;
  unsigned equal = 0;
  for (const Kink &kink : kinks) {
    if (kink.offset > capacity - allocations[item].bytes)
      break;
    cost += slope * (kink.offset - at);
    at = kink.offset;
    slope += kink.change;
    if (at < 0 || at == offsets[item] || at == found)
      continue;
    if (found < 0 || cost < least)
      equal = 0;
    else if (cost > least)
      continue;
    least = cost;
    if (random() % ++equal == 0)
      found = at;
  }
  return found;
}

void Mover::moveTo(unsigned item, int64_t offset) {
  auto count = [&](int change) {
    for (unsigned pair : pairsOf[item])
      if (getOverlap(pairs[pair]) > 0) {
        overlapping[item] += change;
        overlapping[getOther(pairs[pair], item)] += change;
      }
  };
  count(-1);
  offsets[item] = offset;
  count(1);
}

void Mover::moveToLeast(unsigned item) {
  constexpr int64_t kStepsOfPair = 100;
  steps -= kStepsOfPair * int64_t(pairsOf[item].size() + 1);
  int64_t cost = getCost(item), least = 0;
  int64_t offset = findLeast(item, least);
  // To an equal place only sometimes, so that this ends.
  if (offset < 0 || least > cost || (least == cost && random() % 2))
    return;
  moveTo(item, offset);
  if (least == cost)
    return;
  for (unsigned pair : pairsOf[item])
    if (getOverlap(pairs[pair]) > 0)
      wake(getOther(pairs[pair], item));
  if (overlapping[item] > 0)
    wake(item);
}

/// Until none that overlaps has a better place.
void Mover::settle() {
  while (!awake.empty() && steps > 0) {
    std::swap(awake[random() % awake.size()], awake.back());
    unsigned item = awake.back();
    awake.pop_back();
    isAwake[item] = false;
    if (overlapping[item] > 0)
      moveToLeast(item);
  }
}

/// Of the pairs with the most bytes for their weight.
void Mover::addWeight() {
  double most = 0;
  std::vector<unsigned> worst;
  for (unsigned item = 0; item < allocations.size(); ++item) {
    if (overlapping[item] == 0)
      continue;
    steps -= int64_t(pairsOf[item].size());
    for (unsigned index : pairsOf[item]) {
      const Pair &pair = pairs[index];
      double unit = double(pair.unit);
      double share =
          double(getOverlap(pair)) * unit * unit / double(pair.weight);
      if (pair.first != item || share == 0 || share < most)
        continue;
      if (share > most)
        worst.clear();
      most = share;
      worst.push_back(index);
    }
  }
  for (unsigned index : worst) {
    pairs[index].weight += pairs[index].unit;
    wake(pairs[index].first);
    wake(pairs[index].second);
  }
}

bool Mover::run() {
  for (unsigned item = 0; item < allocations.size(); ++item)
    wake(item);
  while (steps > 0) {
    settle();
    if (llvm::all_of(overlapping, [](unsigned count) { return count == 0; }))
      return true;
    addWeight();
  }
  return false;
}

bool removeOverlaps(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
                    std::vector<int64_t> &offsets, int64_t &steps) {
  std::vector<int64_t> moved = offsets;
  if (!Mover(allocations, capacity, moved, steps).run())
    return false;
  offsets = std::move(moved);
  return true;
}

} // namespace tcc::exec
