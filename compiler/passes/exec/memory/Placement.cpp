//===- Placement.cpp - From good orders to an exact search ----------------===//
//
// A placement is an order: allocations are placed one by one, each in the
// smallest gap that holds it. Largest first is within a percent of the bound
// for most programs; where it is not, other orders are tried, then orders near
// the best one, at last an exact search.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/exec/memory/Placement.h"

#include "compiler/passes/exec/memory/Packing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <numeric>
#include <random>

namespace tcc::exec {

using Order = std::vector<unsigned>;

int64_t getMaxLive(llvm::ArrayRef<Allocation> allocations) {
  std::map<int64_t, int64_t> changes;
  for (const Allocation &allocation : allocations) {
    changes[allocation.begin] += allocation.bytes;
    changes[allocation.end + 1] -= allocation.bytes;
  }
  int64_t live = 0, most = 0;
  for (auto [position, change] : changes)
    most = std::max(most, live += change);
  return most;
}

static bool isLiveWith(const Allocation &lhs, const Allocation &rhs) {
  return lhs.begin <= rhs.end && rhs.begin <= lhs.end;
}

namespace {

/// What is placed already and lives at the same time.
struct Obstacle {
  int64_t offset, end;
};

} // namespace

/// The start of the smallest gap between obstacles that holds `bytes`.
static int64_t findGap(llvm::ArrayRef<Obstacle> obstacles, int64_t bytes) {
  int64_t best = -1, bestGap = INT64_MAX, top = 0;
  for (const Obstacle &obstacle : obstacles) {
    int64_t gap = obstacle.offset - top;
    if (gap >= bytes && gap < bestGap) {
      best = top;
      bestGap = gap;
    }
    top = std::max(top, obstacle.end);
  }
  return best >= 0 ? best : top;
}

static Placement placeInOrder(llvm::ArrayRef<Allocation> allocations,
                              const Order &order) {
  Placement placement;
  placement.offsets.resize(allocations.size());
  llvm::SmallVector<unsigned> placed; // by offset
  llvm::SmallVector<Obstacle> obstacles;
  for (unsigned next : order) {
    const Allocation &allocation = allocations[next];
    obstacles.clear();
    for (unsigned other : placed)
      if (isLiveWith(allocation, allocations[other]))
        obstacles.push_back(
            {placement.offsets[other],
             placement.offsets[other] + allocations[other].bytes});
    int64_t offset = findGap(obstacles, allocation.bytes);
    placement.offsets[next] = offset;
    placement.size = std::max(placement.size, offset + allocation.bytes);
    auto position = llvm::partition_point(placed, [&](unsigned other) {
      return placement.offsets[other] <= offset;
    });
    placed.insert(position, next);
  }
  return placement;
}

/// The allocations with the least key first, which ends with their number.
template <typename Key>
static Order orderBy(llvm::ArrayRef<Allocation> allocations, Key key) {
  Order order(allocations.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned i, unsigned j) {
    return key(allocations[i], i) < key(allocations[j], j);
  });
  return order;
}

/// Largest first; of equals the longer lived, then the earlier one.
static Order orderBySize(llvm::ArrayRef<Allocation> allocations) {
  return orderBy(allocations, [](const Allocation &a, unsigned i) {
    return std::tuple(-a.bytes, a.begin - a.end, a.begin, i);
  });
}

static Order orderByLifetime(llvm::ArrayRef<Allocation> allocations) {
  return orderBy(allocations, [](const Allocation &a, unsigned i) {
    return std::tuple(a.begin - a.end, -a.bytes, a.begin, i);
  });
}

static Order orderByArea(llvm::ArrayRef<Allocation> allocations) {
  return orderBy(allocations, [](const Allocation &a, unsigned i) {
    return std::tuple(double(a.bytes) * double(a.begin - a.end - 1), i);
  });
}

/// Those that live together with the most bytes first.
static Order orderByPressure(llvm::ArrayRef<Allocation> allocations) {
  std::vector<int64_t> pressure(allocations.size());
  for (auto [i, allocation] : llvm::enumerate(allocations)) {
    std::vector<Allocation> together;
    for (const Allocation &other : allocations)
      if (isLiveWith(allocation, other))
        together.push_back({std::max(allocation.begin, other.begin),
                            std::min(allocation.end, other.end), other.bytes});
    pressure[i] = getMaxLive(together);
  }
  return orderBy(allocations, [&](const Allocation &a, unsigned i) {
    return std::tuple(-pressure[i], -a.bytes, a.begin - a.end, i);
  });
}

/// Tries orders near `order` until one reaches `bound` or the work is done.
static Placement search(llvm::ArrayRef<Allocation> allocations, Order order,
                        Placement best, int64_t bound) {
  constexpr int64_t kWork = 300'000'000; // steps: well under a second
  int64_t count = allocations.size();
  int64_t tries = std::min<int64_t>(4000, kWork / (count * count + 1));
  std::minstd_rand random(1); // its numbers are the same everywhere
  for (int64_t i = 0; i < tries && best.size > bound; ++i) {
    // One that ends at the top must be placed earlier to lie lower.
    llvm::SmallVector<unsigned> top;
    for (auto [position, allocation] : llvm::enumerate(order))
      if (best.offsets[allocation] + allocations[allocation].bytes == best.size)
        top.push_back(position);
    unsigned from = top[random() % top.size()];
    if (from == 0 || random() % 4 == 0)
      from = random() % count;
    unsigned to = random() % (from + 1);
    Order trial = order;
    std::rotate(trial.begin() + to, trial.begin() + from,
                trial.begin() + from + 1);
    Placement placement = placeInOrder(allocations, trial);
    if (placement.size > best.size)
      continue;
    best = std::move(placement);
    order = std::move(trial);
  }
  return best;
}

/// The best of some orders, and of orders near it.
static Placement placeGreedily(llvm::ArrayRef<Allocation> allocations,
                               int64_t bound) {
  Order bestOrder;
  Placement best;
  for (auto makeOrder :
       {orderBySize, orderByPressure, orderByArea, orderByLifetime}) {
    Order order = makeOrder(allocations);
    Placement placement = placeInOrder(allocations, order);
    if (!bestOrder.empty() && placement.size >= best.size)
      continue;
    best = std::move(placement);
    bestOrder = std::move(order);
    if (best.size <= bound)
      return best;
  }
  return search(allocations, std::move(bestOrder), std::move(best), bound);
}

/// Smaller than `placement` where the exact search finds that; no smaller than
/// `bound`.
static void refine(llvm::ArrayRef<Allocation> allocations, int64_t bound,
                   Placement &placement) {
  constexpr size_t kMaxAllocations = 4096; // it takes their square
  constexpr int64_t kSteps = 2'000'000'000, kRounds = 4;
  if (allocations.size() > kMaxAllocations)
    return;
  // What is surely too small first: with no byte to spare there is the least
  // to try.
  int64_t tooSmall = bound - kArenaAlignment;
  for (int64_t round = 0; round < kRounds; ++round) {
    if (placement.size - tooSmall <= kArenaAlignment)
      return;
    int64_t capacity =
        round == 0 ? bound
                   : llvm::alignDown(tooSmall + (placement.size - tooSmall) / 2,
                                     kArenaAlignment);
    int64_t steps = round == 0 ? kSteps : kSteps / (2 * kRounds);
    if (auto offsets = packWithin(allocations, capacity, steps))
      placement = {std::move(*offsets), capacity};
    else
      tooSmall = capacity;
  }
}

/// Places what is live in one stretch of time; `bound` is what may be reached.
static Placement placeTogether(llvm::ArrayRef<Allocation> allocations,
                               int64_t bound) {
  constexpr int64_t kSmallGap = 1024; // a part of the bound, not worth seconds
  Placement placement = placeGreedily(allocations, bound);
  if (placement.size > bound + bound / kSmallGap)
    refine(allocations, bound, placement);
  return placement;
}

namespace {

/// Places apart what never lives at the same time.
class Partition {
public:
  Partition(llvm::ArrayRef<Allocation> allocations, Placement &placement)
      : allocations(allocations), placement(placement) {}

  /// Places `members`, sorted by their begin, from `base` up; what is no larger
  /// than `bound` is as good as the best.
  void place(llvm::ArrayRef<unsigned> members, int64_t base, int64_t bound);

private:
  void placeConnected(llvm::ArrayRef<unsigned> members, int64_t base,
                      int64_t bound);

  llvm::ArrayRef<Allocation> allocations;
  Placement &placement;
};

} // namespace

void Partition::place(llvm::ArrayRef<unsigned> members, int64_t base,
                      int64_t bound) {
  size_t first = 0;
  int64_t end = -1;
  for (auto [i, member] : llvm::enumerate(members)) {
    if (i > first && allocations[member].begin > end) {
      placeConnected(members.slice(first, i - first), base, bound);
      first = i;
    }
    end = std::max(end, allocations[member].end);
  }
  if (first < members.size())
    placeConnected(members.drop_front(first), base, bound);
}

/// What lives all the time lies at the bottom; without it, the others may fall
/// apart.
void Partition::placeConnected(llvm::ArrayRef<unsigned> members, int64_t base,
                               int64_t bound) {
  int64_t begin = allocations[members.front()].begin, end = begin;
  for (unsigned member : members)
    end = std::max(end, allocations[member].end);
  llvm::SmallVector<unsigned> others;
  std::vector<Allocation> parts;
  int64_t bottom = base;
  for (unsigned member : members) {
    const Allocation &allocation = allocations[member];
    if (allocation.begin > begin || allocation.end < end) {
      others.push_back(member);
      parts.push_back(allocation);
      continue;
    }
    placement.offsets[member] = bottom;
    bottom += allocation.bytes;
  }
  placement.size = std::max(placement.size, bottom);
  if (others.size() < members.size())
    return place(others, bottom, bound);
  Placement own =
      placeTogether(parts, std::max(bound - base, getMaxLive(parts)));
  for (auto [member, offset] : llvm::zip(others, own.offsets))
    placement.offsets[member] = base + offset;
  placement.size = std::max(placement.size, base + own.size);
}

Placement placeAllocations(llvm::ArrayRef<Allocation> allocations) {
  std::vector<Allocation> aligned(allocations);
  for (Allocation &allocation : aligned)
    allocation.bytes = llvm::alignTo(allocation.bytes, kArenaAlignment);
  Order members = orderBy(aligned, [](const Allocation &a, unsigned i) {
    return std::tuple(a.begin, i);
  });
  Placement placement;
  placement.offsets.resize(aligned.size());
  Partition(aligned, placement).place(members, 0, getMaxLive(aligned));
  return placement;
}

} // namespace tcc::exec
