#include "compiler/passes/exec/memory/Orders.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include <map>
#include <numeric>
#include <random>
#include <tuple>

namespace tcc::exec {

namespace {

/// An allocation that has its offset.
struct Placed {
  int64_t offset, end;
  int64_t begin, last;
  unsigned item;
};

class OrderSearch {
public:
  OrderSearch(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
              int64_t &steps);

  bool run();
  std::vector<int64_t> getOffsets() const;

private:
  void findCore();
  void extendCore(llvm::function_ref<bool(unsigned)> belongs);
  bool placeFrom(unsigned rank, unsigned end, int64_t mostExcess);
  void place(unsigned item);
  void accept();
  void tryMove();
  bool findRank(unsigned item, unsigned mostRank, unsigned &rank);
  bool placeOthers();

  bool isLiveWith(unsigned a, unsigned b) const {
    return exec::isLiveWith(allocations[a], allocations[b]);
  }

  llvm::ArrayRef<Allocation> allocations;
  int64_t capacity;
  int64_t &steps;
  std::vector<unsigned> order; ///< the core first
  unsigned coreSize = 0;
  std::vector<Placed> placed; ///< by offset, of the order being tried
  int64_t excess = 0;         ///< of each, bytes above the capacity
  // The order that was accepted last.
  std::vector<Placed> accepted; ///< by offset
  std::vector<unsigned> ranks;  ///< of each allocation
  int64_t acceptedExcess = 0;
  std::vector<unsigned> tooHigh; ///< what lies above the capacity
  std::minstd_rand random{1};    // its numbers are the same everywhere
};

} // namespace

OrderSearch::OrderSearch(llvm::ArrayRef<Allocation> allocations,
                         int64_t capacity, int64_t &steps)
    : allocations(allocations), capacity(capacity), steps(steps),
      order(allocations.size()), ranks(allocations.size()) {
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned i, unsigned j) {
    const Allocation &a = allocations[i], &b = allocations[j];
    return std::tuple(-a.bytes, a.begin - a.end, a.begin, i) <
           std::tuple(-b.bytes, b.begin - b.end, b.begin, j);
  });
  findCore();
}

void OrderSearch::extendCore(llvm::function_ref<bool(unsigned)> belongs) {
  std::vector<unsigned> others, rest(order.begin() + coreSize, order.end());
  order.resize(coreSize);
  for (unsigned item : rest)
    (belongs(item) ? order : others).push_back(item);
  coreSize = order.size();
  llvm::append_range(order, others);
}

void OrderSearch::findCore() {
  constexpr int64_t kSmallest = 4096, kParts = 8; // of the most that is live
  std::map<int64_t, int64_t> live;                // by where it changes
  for (const Allocation &allocation : allocations) {
    live[allocation.begin] += allocation.bytes;
    live[allocation.end + 1] -= allocation.bytes;
  }
  std::vector<int64_t> busy; // positions
  int64_t bytes = 0, most = 0;
  for (auto &[position, change] : live) {
    change = bytes += change;
    most = std::max(most, bytes);
  }
  for (auto [position, bytes] : live)
    if (bytes >= most / kParts * (kParts - 1))
      busy.push_back(position);
  auto isInCore = [&](unsigned item) {
    const Allocation &allocation = allocations[item];
    auto next = llvm::lower_bound(busy, allocation.begin);
    return allocation.bytes >= most / kSmallest && next != busy.end() &&
           *next <= allocation.end;
  };
  extendCore(isInCore);
}

/// Where there is room above what is placed, lowest.
void OrderSearch::place(unsigned item) {
  const Allocation &allocation = allocations[item];
  int64_t top = 0;
  for (const Placed &other : placed) {
    bool isApart =
        other.begin > allocation.end || other.last < allocation.begin;
    if (isApart && !areUnordered(allocation, allocations[other.item]))
      continue;
    if (other.offset - top >= allocation.bytes)
      break;
    top = std::max(top, other.end);
  }
  excess += std::max<int64_t>(0, top + allocation.bytes - capacity);
  auto position = llvm::partition_point(
      placed, [&](const Placed &other) { return other.offset <= top; });
  placed.insert(position, {top, top + allocation.bytes, allocation.begin,
                           allocation.end, item});
}

/// Places what the order has from `rank` on, up to `end`; false as soon as
/// there is more than `mostExcess`.
bool OrderSearch::placeFrom(unsigned rank, unsigned end, int64_t mostExcess) {
  placed.clear();
  excess = 0;
  for (const Placed &each : accepted)
    if (ranks[each.item] < rank) {
      placed.push_back(each);
      excess += std::max<int64_t>(0, each.end - capacity);
    }
  steps -= accepted.size();
  for (; rank < end; ++rank) {
    steps -= int64_t(placed.size()) + 16;
    place(order[rank]);
    if (excess > mostExcess)
      return false;
  }
  return true;
}

void OrderSearch::accept() {
  accepted.swap(placed);
  acceptedExcess = excess;
  tooHigh.clear();
  for (const Placed &each : accepted)
    if (each.end > capacity)
      tooHigh.push_back(each.item);
  for (unsigned rank = 0; rank < accepted.size(); ++rank)
    ranks[order[rank]] = rank;
}

/// One below `mostRank`, of something that lives with `item`, at random; false
/// if that is hard to find.
bool OrderSearch::findRank(unsigned item, unsigned mostRank, unsigned &rank) {
  constexpr int kTries = 32;
  for (int i = 0; i < kTries && mostRank > 0; ++i) {
    rank = random() % mostRank;
    if (order[rank] != item && isLiveWith(order[rank], item))
      return true;
  }
  return false;
}

/// Takes it back if that is worse.
void OrderSearch::tryMove() {
  constexpr unsigned kHops = 3;
  constexpr int64_t kStepsOfMove = 100;
  steps -= kStepsOfMove;
  unsigned item = tooHigh[random() % tooHigh.size()], to = 0;
  for (unsigned hops = random() % kHops; hops > 0; --hops)
    if (findRank(item, coreSize, to))
      item = order[to];
  unsigned from = ranks[item];
  if (!findRank(item, from, to))
    return;
  bool swaps = random() % 2;
  auto begin = order.begin();
  if (swaps)
    std::swap(order[to], order[from]);
  else
    std::rotate(begin + to, begin + from, begin + from + 1);
  if (placeFrom(to, coreSize, acceptedExcess)) {
    accept();
    return;
  }
  if (swaps)
    std::swap(order[to], order[from]);
  else
    std::rotate(begin + to, begin + to + 1, begin + from + 1);
}

/// Places the allocations outside the core; those without room join it then.
bool OrderSearch::placeOthers() {
  placeFrom(coreSize, order.size(), INT64_MAX);
  if (excess == 0)
    return true;
  std::vector<bool> isTooHigh(allocations.size());
  for (const Placed &each : placed)
    isTooHigh[each.item] = each.end > capacity;
  unsigned before = coreSize;
  extendCore([&](unsigned item) { return isTooHigh[item]; });
  placeFrom(before, coreSize, INT64_MAX);
  accept();
  return false;
}

bool OrderSearch::run() {
  placeFrom(0, coreSize, INT64_MAX);
  accept();
  while (steps > 0) {
    if (acceptedExcess > 0)
      tryMove();
    else if (placeOthers())
      return true;
  }
  return false;
}

std::vector<int64_t> OrderSearch::getOffsets() const {
  std::vector<int64_t> offsets(allocations.size());
  for (const Placed &each : placed)
    offsets[each.item] = each.offset;
  return offsets;
}

bool findOrder(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
               std::vector<int64_t> &offsets, int64_t &steps) {
  OrderSearch search(allocations, capacity, steps);
  if (!search.run())
    return false;
  offsets = search.getOffsets();
  return true;
}

} // namespace tcc::exec
