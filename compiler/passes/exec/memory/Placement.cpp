//===- Placement.cpp - From good orders to searches -----------------------===//
//
// A placement is an order: allocations are placed one by one, each in the
// smallest gap that holds it. Largest first is within a percent of the bound
// for most programs; where it is not, other orders are tried, then an exact
// search, at last one that improves an order.
//
//===----------------------------------------------------------------------===//
#include "compiler/passes/exec/memory/Placement.h"

#include "compiler/passes/exec/memory/Orders.h"
#include "compiler/passes/exec/memory/Packing.h"
#include "runtime/base/Alignment.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace tcc::exec {

using PlaceOrder = std::vector<unsigned>;

static bool hasUnordered(llvm::ArrayRef<Allocation> allocations) {
  return llvm::any_of(allocations,
                      [](const Allocation &a) { return a.unordered; });
}

/// The most bytes of what may be live at one moment with `member`: those that
/// all are live with each other, the largest first.
static int64_t getMaxBeside(unsigned member,
                            llvm::ArrayRef<Allocation> bySize) {
  llvm::SmallVector<unsigned> together = {member};
  int64_t bytes = bySize[member].bytes;
  for (unsigned i = 0; i < bySize.size(); ++i)
    if (i != member && llvm::all_of(together, [&](unsigned other) {
          return isLiveWith(bySize[i], bySize[other]);
        })) {
      together.push_back(i);
      bytes += bySize[i].bytes;
    }
  return bytes;
}

int64_t getMaxLive(llvm::ArrayRef<Allocation> allocations) {
  std::map<int64_t, int64_t> changes;
  for (const Allocation &allocation : allocations) {
    changes[allocation.begin] += allocation.bytes;
    changes[allocation.end + 1] -= allocation.bytes;
  }
  int64_t live = 0, most = 0;
  for (auto [position, change] : changes)
    most = std::max(most, live += change);
  if (!hasUnordered(allocations))
    return most;
  std::vector<Allocation> bySize(allocations);
  llvm::sort(bySize, [](const Allocation &a, const Allocation &b) {
    return std::tuple(-a.bytes, a.id) < std::tuple(-b.bytes, b.id);
  });
  constexpr size_t kMembers = 64; // it takes the square of all
  for (unsigned member = 0; member < std::min(kMembers, bySize.size());
       ++member)
    most = std::max(most, getMaxBeside(member, bySize));
  return most;
}

/// The most of which less is not worth seconds.
static int64_t getNear(int64_t bound) {
  constexpr int64_t kParts = 512;
  return bound + llvm::alignDown(bound / kParts, kTensorAlignment);
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
                              const PlaceOrder &order) {
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
static PlaceOrder orderBy(llvm::ArrayRef<Allocation> allocations, Key key) {
  PlaceOrder order(allocations.size());
  std::iota(order.begin(), order.end(), 0);
  llvm::sort(order, [&](unsigned i, unsigned j) {
    return key(allocations[i], i) < key(allocations[j], j);
  });
  return order;
}

/// Largest first; of equals the longer lived, then the earlier one.
static PlaceOrder orderBySize(llvm::ArrayRef<Allocation> allocations) {
  return orderBy(allocations, [](const Allocation &a, unsigned i) {
    return std::tuple(-a.bytes, a.begin - a.end, a.begin, i);
  });
}

static PlaceOrder orderByLifetime(llvm::ArrayRef<Allocation> allocations) {
  return orderBy(allocations, [](const Allocation &a, unsigned i) {
    return std::tuple(a.begin - a.end, -a.bytes, a.begin, i);
  });
}

static PlaceOrder orderByArea(llvm::ArrayRef<Allocation> allocations) {
  return orderBy(allocations, [](const Allocation &a, unsigned i) {
    return std::tuple(double(a.bytes) * double(a.begin - a.end - 1), i);
  });
}

/// The part of `allocation` while `other` is live; of unordered ones, all of
/// `other`.
static Allocation clip(const Allocation &allocation, const Allocation &other) {
  int64_t begin = std::max(allocation.begin, other.begin);
  int64_t end = std::min(allocation.end, other.end);
  if (begin > end)
    return {other.begin, other.end, allocation.bytes};
  return {begin, end, allocation.bytes};
}

/// The allocations that live together with the most bytes come first.
static PlaceOrder orderByPressure(llvm::ArrayRef<Allocation> allocations) {
  std::vector<int64_t> pressure(allocations.size());
  for (auto [i, allocation] : llvm::enumerate(allocations)) {
    std::vector<Allocation> together;
    for (const Allocation &other : allocations)
      if (isLiveWith(allocation, other))
        together.push_back(clip(other, allocation));
    pressure[i] = getMaxLive(together);
  }
  return orderBy(allocations, [&](const Allocation &a, unsigned i) {
    return std::tuple(-pressure[i], -a.bytes, a.begin - a.end, i);
  });
}

/// The best of some orders.
static Placement placeGreedily(llvm::ArrayRef<Allocation> allocations,
                               int64_t bound) {
  Placement best;
  for (auto makeOrder :
       {orderBySize, orderByPressure, orderByArea, orderByLifetime}) {
    Placement placement = placeInOrder(allocations, makeOrder(allocations));
    if (best.offsets.empty() || placement.size < best.size)
      best = std::move(placement);
    if (best.size <= bound)
      break;
  }
  return best;
}

/// Takes a place below `capacity`, if it finds one, for `share` of `steps`.
static bool placeWithin(llvm::ArrayRef<Allocation> allocations,
                        int64_t capacity, bool isExact, Placement &placement,
                        int64_t share, int64_t &steps) {
  steps -= share;
  bool found = false;
  if (!isExact) {
    found = findOrder(allocations, capacity, placement.offsets, share);
  } else if (auto offsets = packWithin(allocations, capacity, share)) {
    placement.offsets = std::move(*offsets);
    found = true;
  }
  steps += share;
  if (!found)
    return false;
  placement.size = 0;
  for (auto [allocation, offset] : llvm::zip(allocations, placement.offsets))
    placement.size = std::max(placement.size, offset + allocation.bytes);
  return true;
}

/// Smaller than `placement` where a search finds that; no smaller than `bound`.
static void refine(llvm::ArrayRef<Allocation> allocations, int64_t bound,
                   Placement &placement, int64_t &steps) {
  constexpr size_t kMaxAllocations = 4096; // it takes their square
  constexpr size_t kFew = 32;              // an exact search ends
  constexpr int64_t kFailures = 4;
  if (allocations.size() > kMaxAllocations)
    return;
  // What is surely too small first: with no byte to spare there is the least
  // to try exactly.
  if (placeWithin(allocations, bound, /*isExact=*/true, placement, steps / 6,
                  steps))
    return;
  bool isExact = allocations.size() <= kFew;
  if (!isExact && placeWithin(allocations, getNear(bound), isExact, placement,
                              steps / 2, steps))
    return;
  int64_t tooSmall = bound;
  for (int64_t failures = 0; failures < kFailures && steps > 0;) {
    int64_t excess = placement.size - tooSmall;
    if (excess <= kTensorAlignment || placement.size <= getNear(bound))
      return;
    // Much less at once is harder to find than less in steps.
    int64_t less = llvm::alignTo(excess / (isExact ? 2 : 3), kTensorAlignment);
    int64_t capacity = placement.size - less;
    if (placeWithin(allocations, capacity, isExact, placement,
                    steps / (kFailures - failures), steps))
      continue;
    tooSmall = capacity;
    ++failures;
  }
}

namespace {

/// Allocations that are live in one stretch of time, from `base` up.
struct Part {
  std::vector<unsigned> members; ///< in the order of their begin
  int64_t base;
};

/// Places apart what never lives at the same time.
class Partition {
public:
  explicit Partition(llvm::ArrayRef<Allocation> allocations);

  Placement place();

private:
  void split(const Part &part);
  void placeLasting(Part part);
  void placeTogether(const Part &part);
  std::vector<Allocation> collect(const Part &part) const;

  int64_t getReach(const Allocation &allocation) const;

  llvm::ArrayRef<Allocation> allocations;
  llvm::DenseMap<unsigned, int64_t> begins; ///< by id, of those with unordered
  Placement placement;
  std::vector<Part> toSplit, parts;
  int64_t steps; ///< nanoseconds, about
};

} // namespace

Partition::Partition(llvm::ArrayRef<Allocation> allocations)
    : allocations(allocations) {
  placement.offsets.resize(allocations.size());
  // Intervals nearly always reach the bound. What is unordered may have no
  // placement near it: a search would take all that it may, so that it has a
  // second for 8 GB.
  constexpr int64_t kSteps = 6'000'000'000, kUnorderedSteps = 50'000'000;
  constexpr int64_t kBytesOfStep = 8;
  steps = kSteps;
  if (hasUnordered(allocations))
    steps = std::clamp(getMaxLive(allocations) / kBytesOfStep, kUnorderedSteps,
                       kSteps);
  for (const Allocation &allocation : allocations)
    if (allocation.unordered)
      begins[allocation.id] = allocation.begin;
  auto byBegin = [](const Allocation &a, unsigned i) {
    return std::tuple(a.begin, i);
  };
  toSplit.push_back({orderBy(allocations, byBegin), /*base=*/0});
}

/// The last position at which something begins that `allocation` is live with.
int64_t Partition::getReach(const Allocation &allocation) const {
  int64_t reach = allocation.end;
  if (allocation.unordered)
    for (unsigned other : allocation.unordered->set_bits())
      reach = std::max(reach, begins.lookup(other));
  return reach;
}

void Partition::split(const Part &part) {
  Part stretch{{}, part.base};
  int64_t end = 0;
  for (unsigned member : part.members) {
    const Allocation &allocation = allocations[member];
    if (!stretch.members.empty() && allocation.begin > end)
      placeLasting(std::exchange(stretch, {{}, part.base}));
    int64_t reach = getReach(allocation);
    end = stretch.members.empty() ? reach : std::max(end, reach);
    stretch.members.push_back(member);
  }
  if (!stretch.members.empty())
    placeLasting(std::move(stretch));
}

/// What lives all the time lies at the bottom; without it, the others may fall
/// apart.
void Partition::placeLasting(Part part) {
  int64_t begin = allocations[part.members.front()].begin, end = begin;
  for (unsigned member : part.members)
    end = std::max(end, allocations[member].end);
  size_t count = part.members.size();
  llvm::erase_if(part.members, [&](unsigned member) {
    const Allocation &allocation = allocations[member];
    if (allocation.begin > begin || allocation.end < end)
      return false;
    placement.offsets[member] = part.base;
    part.base += allocation.bytes;
    return true;
  });
  placement.size = std::max(placement.size, part.base);
  bool isSmaller = part.members.size() < count;
  (isSmaller ? toSplit : parts).push_back(std::move(part));
}

std::vector<Allocation> Partition::collect(const Part &part) const {
  std::vector<Allocation> own;
  for (unsigned member : part.members)
    own.push_back(allocations[member]);
  return own;
}

void Partition::placeTogether(const Part &part) {
  std::vector<Allocation> own = collect(part);
  int64_t bound = std::max(getMaxLive(own), placement.size - part.base);
  Placement together = placeGreedily(own, bound);
  if (together.size > getNear(bound))
    refine(own, bound, together, steps);
  for (auto [member, offset] : llvm::zip(part.members, together.offsets))
    placement.offsets[member] = part.base + offset;
  placement.size = std::max(placement.size, part.base + together.size);
}

/// The part that needs the most first: the others need not be smaller.
Placement Partition::place() {
  while (!toSplit.empty()) {
    Part part = std::move(toSplit.back());
    toSplit.pop_back();
    split(part);
  }
  std::vector<std::pair<int64_t, unsigned>> needs;
  for (auto [i, part] : llvm::enumerate(parts))
    needs.emplace_back(-part.base - getMaxLive(collect(part)), i);
  llvm::sort(needs);
  for (auto [need, i] : needs)
    placeTogether(parts[i]);
  return placement;
}

Placement placeAllocations(llvm::ArrayRef<Allocation> allocations) {
  std::vector<Allocation> aligned(allocations);
  for (Allocation &allocation : aligned)
    allocation.bytes = llvm::alignTo(allocation.bytes, kTensorAlignment);
  return Partition(aligned).place();
}

} // namespace tcc::exec
