//===- Placement.cpp - Best fit in a good order ---------------------------===//
//
// A placement is an order: allocations are placed one by one, each in the
// smallest gap that holds it. Largest first is within a percent of the bound
// for most programs; where it is not, a search moves allocations to the front
// that end at the top of the arena.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/exec/memory/Placement.h"

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

/// Largest first; of equals the longer lived, then the earlier one.
static Order orderBySize(llvm::ArrayRef<Allocation> allocations) {
  Order order(allocations.size());
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](unsigned i) {
    const Allocation &a = allocations[i];
    return std::tuple(-a.bytes, a.begin - a.end, a.begin, i);
  };
  llvm::sort(order, [&](unsigned i, unsigned j) { return key(i) < key(j); });
  return order;
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
  Order order = orderBySize(allocations);
  std::vector<unsigned> rank(order.size());
  for (auto [position, i] : llvm::enumerate(order))
    rank[i] = position;
  auto key = [&](unsigned i) { return std::tuple(-pressure[i], rank[i]); };
  llvm::sort(order, [&](unsigned i, unsigned j) { return key(i) < key(j); });
  return order;
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

Placement placeAllocations(llvm::ArrayRef<Allocation> allocations) {
  std::vector<Allocation> aligned(allocations);
  for (Allocation &allocation : aligned)
    allocation.bytes = llvm::alignTo(allocation.bytes, kArenaAlignment);
  int64_t bound = getMaxLive(aligned);
  Order order = orderBySize(aligned);
  Placement best = placeInOrder(aligned, order);
  if (best.size == bound)
    return best;
  Order byPressure = orderByPressure(aligned);
  Placement other = placeInOrder(aligned, byPressure);
  if (other.size < best.size) {
    best = std::move(other);
    order = std::move(byPressure);
  }
  return search(aligned, std::move(order), std::move(best), bound);
}

} // namespace tcc::exec
