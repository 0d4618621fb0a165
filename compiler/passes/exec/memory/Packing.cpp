#include "compiler/passes/exec/memory/Packing.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/MathExtras.h"
#include <limits>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace tcc::exec {

namespace {

/// A stretch of time in which no allocation begins or ends.
struct Section {
  int64_t top = 0;  ///< the end of what is placed
  int64_t rest = 0; ///< bytes of what is not
};

constexpr int64_t kNowhere = -1;
constexpr unsigned kNone = -1;

/// An allocation lives in the sections [first, last].
struct Item {
  int64_t bytes;
  unsigned first, last;
  bool isAlike = true;          ///< to all with its sections and bytes
  unsigned rank = 0;            ///< in the order to try
  unsigned twin = kNone;        ///< one of the same kind to try before
  int64_t lowest = 0;           ///< offset above all that is placed
  int64_t forbidden = kNowhere; ///< offset that was tried in vain
  bool isPlaced = false;
  llvm::SmallVector<unsigned> neighbours{}; ///< live at the same time
};

class Packer {
public:
  Packer(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
         int64_t &steps);

  /// Tries places in the order of time for a part of the steps, then the
  /// largest items first, and so on.
  std::optional<std::vector<int64_t>> run();

private:
  enum class Order { Time, Area, Lifetime };
  enum class Outcome { Found, Impossible, OutOfSteps };
  struct Changed {
    unsigned index;
    int64_t value;
  };

  void rankItems(Order by);
  Outcome search(int64_t level, unsigned left);
  void collectCandidates(int64_t level,
                         llvm::SmallVectorImpl<unsigned> &candidates) const;
  bool keepUrgent(llvm::SmallVectorImpl<unsigned> &candidates);
  bool place(Item &item);
  void raiseNeighbours(const Item &item);
  void remove(Item &item, size_t tops, size_t offsets);
  bool canBeNext(const Item &item, int64_t level) const;

  int64_t capacity;
  int64_t &steps;
  int64_t stepsEnd = 0; ///< where the current order ends
  std::vector<Section> sections;
  std::vector<Item> items;
  std::vector<Changed> oldTops, oldOffsets;
  std::vector<int> coverage; ///< of each section by candidates
};

} // namespace

Packer::Packer(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
               int64_t &steps)
    : capacity(capacity), steps(steps) {
  std::vector<int64_t> begins;
  for (const Allocation &allocation : allocations)
    begins.push_back(allocation.begin);
  llvm::sort(begins);
  begins.erase(llvm::unique(begins), begins.end());
  sections.resize(begins.size());
  coverage.resize(begins.size() + 1);
  for (const Allocation &allocation : allocations) {
    auto first = llvm::lower_bound(begins, allocation.begin);
    auto last = llvm::upper_bound(begins, allocation.end) - 1;
    items.push_back({allocation.bytes, unsigned(first - begins.begin()),
                     unsigned(last - begins.begin()),
                     /*isAlike=*/!allocation.unordered});
    for (unsigned s = items.back().first; s <= items.back().last; ++s)
      sections[s].rest += allocation.bytes;
  }
  for (auto [i, item] : llvm::enumerate(items))
    for (auto [j, other] : llvm::enumerate(items))
      if (i != j && ((other.first <= item.last && item.first <= other.last) ||
                     areUnordered(allocations[i], allocations[j])))
        item.neighbours.push_back(j);
  steps -= items.size() * items.size();
}

void Packer::rankItems(Order by) {
  std::vector<unsigned> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  auto key = [&](unsigned i) {
    const Item &item = items[i];
    int64_t length = item.last - item.first + 1;
    double area = double(length) * double(item.bytes);
    switch (by) {
    case Order::Time:
      return std::tuple(double(item.first), double(-item.bytes), i);
    case Order::Area:
      return std::tuple(-area, double(-length), i);
    case Order::Lifetime:
      return std::tuple(double(-length), -area, i);
    }
    llvm_unreachable("covered switch");
  };
  llvm::sort(order, [&](unsigned i, unsigned j) { return key(i) < key(j); });
  std::map<std::tuple<unsigned, unsigned, int64_t>, unsigned> latest;
  for (auto [rank, i] : llvm::enumerate(order)) {
    Item &item = items[i];
    item.rank = rank;
    if (!item.isAlike)
      continue;
    auto [place, isNew] =
        latest.try_emplace({item.first, item.last, item.bytes}, kNone);
    item.twin = std::exchange(place->second, i);
  }
}

bool Packer::canBeNext(const Item &item, int64_t level) const {
  return !item.isPlaced && item.lowest >= level &&
         item.lowest != item.forbidden &&
         (item.twin == kNone || items[item.twin].isPlaced);
}

/// What may be placed next, at `level` or above, lowest first.
void Packer::collectCandidates(
    int64_t level, llvm::SmallVectorImpl<unsigned> &candidates) const {
  int64_t lowestEnd = std::numeric_limits<int64_t>::max();
  for (const Item &item : items)
    if (!item.isPlaced)
      lowestEnd = std::min(lowestEnd, item.lowest + item.bytes);
  for (auto [i, item] : llvm::enumerate(items))
    if (item.lowest < lowestEnd && canBeNext(item, level))
      candidates.push_back(i);
  llvm::sort(candidates, [&](unsigned i, unsigned j) {
    return std::tuple(items[i].lowest, items[i].rank) <
           std::tuple(items[j].lowest, items[j].rank);
  });
}

/// A section that has no byte to spare must be covered where it ends: of the
/// lowest ones keeps the candidates of that with the fewest. False if there is
/// one that nothing covers.
bool Packer::keepUrgent(llvm::SmallVectorImpl<unsigned> &candidates) {
  if (candidates.empty())
    return false;
  int64_t lowest = items[candidates.front()].lowest;
  std::fill(coverage.begin(), coverage.end(), 0);
  for (unsigned i : candidates) {
    if (items[i].lowest > lowest)
      break;
    ++coverage[items[i].first];
    --coverage[items[i].last + 1];
  }
  int covering = 0, fewest = std::numeric_limits<int>::max();
  unsigned urgent = 0;
  for (auto [s, section] : llvm::enumerate(sections)) {
    covering += coverage[s];
    if (section.rest == 0 || section.top > lowest ||
        section.top + section.rest < capacity)
      continue;
    if (section.top < lowest || covering == 0)
      return false;
    if (covering < fewest) {
      fewest = covering;
      urgent = s;
    }
  }
  if (fewest < std::numeric_limits<int>::max())
    llvm::erase_if(candidates, [&](unsigned i) {
      return items[i].lowest > lowest || items[i].first > urgent ||
             items[i].last < urgent;
    });
  return true;
}

/// Puts `item` at its lowest offset; false if some section has no room then for
/// what is still to come, from this offset up.
bool Packer::place(Item &item) {
  int64_t end = item.lowest + item.bytes;
  for (unsigned s = item.first; s <= item.last; ++s) {
    oldTops.push_back({s, sections[s].top});
    sections[s].top = end;
    sections[s].rest -= item.bytes;
  }
  item.isPlaced = true;
  if (end > capacity)
    return false;
  for (const Section &section : sections)
    if (section.rest > 0 &&
        std::max(section.top, item.lowest) + section.rest > capacity)
      return false;
  return true;
}

void Packer::raiseNeighbours(const Item &item) {
  int64_t end = item.lowest + item.bytes;
  for (unsigned i : item.neighbours)
    if (!items[i].isPlaced && items[i].lowest < end) {
      oldOffsets.push_back({i, items[i].lowest});
      items[i].lowest = end;
    }
}

void Packer::remove(Item &item, size_t tops, size_t offsets) {
  item.isPlaced = false;
  for (unsigned s = item.first; s <= item.last; ++s)
    sections[s].rest += item.bytes;
  for (; oldTops.size() > tops; oldTops.pop_back())
    sections[oldTops.back().index].top = oldTops.back().value;
  for (; oldOffsets.size() > offsets; oldOffsets.pop_back())
    items[oldOffsets.back().index].lowest = oldOffsets.back().value;
}

/// A candidate that was tried in vain is not placed at that offset again behind
/// the next ones: what is placed at one offset would be tried in all orders.
Packer::Outcome Packer::search(int64_t level, unsigned left) {
  if (left == 0)
    return Outcome::Found;
  llvm::SmallVector<unsigned> candidates;
  collectCandidates(level, candidates);
  steps -= items.size() + sections.size() +
           candidates.size() * llvm::Log2_64_Ceil(candidates.size() + 1);
  if (!keepUrgent(candidates))
    return Outcome::Impossible;
  llvm::SmallVector<std::pair<unsigned, int64_t>> inVain;
  Outcome outcome = Outcome::Impossible;
  for (unsigned candidate : candidates) {
    if (steps < stepsEnd)
      outcome = Outcome::OutOfSteps;
    if (outcome == Outcome::OutOfSteps)
      break;
    Item &item = items[candidate];
    steps -= sections.size() + item.neighbours.size();
    size_t tops = oldTops.size(), offsets = oldOffsets.size();
    if (place(item)) {
      raiseNeighbours(item);
      outcome = search(item.lowest, left - 1);
    }
    if (outcome == Outcome::Found)
      return outcome;
    remove(item, tops, offsets);
    inVain.emplace_back(candidate, std::exchange(item.forbidden, item.lowest));
  }
  for (auto [candidate, before] : inVain)
    items[candidate].forbidden = before;
  return outcome;
}

std::optional<std::vector<int64_t>> Packer::run() {
  constexpr Order kOrders[] = {Order::Time, Order::Area, Order::Lifetime};
  int64_t share = steps / std::size(kOrders);
  for (Order order : kOrders) {
    if (steps <= 0)
      break;
    stepsEnd = steps - share;
    rankItems(order);
    Outcome outcome = search(/*level=*/0, items.size());
    if (outcome == Outcome::Impossible)
      return std::nullopt;
    if (outcome == Outcome::OutOfSteps)
      continue;
    std::vector<int64_t> offsets;
    for (const Item &item : items)
      offsets.push_back(item.lowest);
    return offsets;
  }
  return std::nullopt;
}

std::optional<std::vector<int64_t>>
packWithin(llvm::ArrayRef<Allocation> allocations, int64_t capacity,
           int64_t &steps) {
  return Packer(allocations, capacity, steps).run();
}

} // namespace tcc::exec
