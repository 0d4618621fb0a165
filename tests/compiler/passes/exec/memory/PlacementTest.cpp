#include "compiler/passes/exec/memory/Orders.h"
#include "compiler/passes/exec/memory/Packing.h"
#include "runtime/base/Alignment.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <numeric>
#include <random>

using namespace tcc::exec;

using Allocations = std::vector<Allocation>;

static constexpr int64_t kUnit = tcc::kTensorAlignment;

static bool areApart(const Allocation &a, int64_t atA, const Allocation &b,
                     int64_t atB) {
  return !isLiveWith(a, b) || atA + a.bytes <= atB || atB + b.bytes <= atA;
}

/// What no placement may break, whatever made it.
static void checkPlacement(const Allocations &allocations,
                           const std::vector<int64_t> &offsets, int64_t size) {
  ASSERT_EQ(offsets.size(), allocations.size());
  for (size_t i = 0; i < offsets.size(); ++i) {
    ASSERT_EQ(offsets[i] % kUnit, 0);
    ASSERT_GE(offsets[i], 0);
    ASSERT_LE(offsets[i] + allocations[i].bytes, size);
    for (size_t j = 0; j < i; ++j)
      ASSERT_TRUE(
          areApart(allocations[i], offsets[i], allocations[j], offsets[j]))
          << i << " over " << j;
  }
}

/// A full rectangle of `height` over time, cut into pieces: its height is the
/// best.
static Allocations cutRectangle(size_t pieces, int64_t height, unsigned seed) {
  struct Piece {
    int64_t begin, end, bottom, top;
  };
  std::mt19937 random(seed);
  std::vector<Piece> cut{{0, 4096, 0, height}};
  while (cut.size() < pieces) {
    // Large ones are cut more often, or most would be tiny.
    size_t chosen = random() % cut.size(), other = random() % cut.size();
    auto area = [&](size_t i) {
      return (cut[i].end - cut[i].begin) * (cut[i].top - cut[i].bottom);
    };
    Piece &piece = cut[area(chosen) < area(other) ? other : chosen];
    bool isInTime = random() % 2;
    int64_t &from = isInTime ? piece.begin : piece.bottom;
    int64_t to = isInTime ? piece.end : piece.top;
    if (to - from < 4)
      continue;
    int64_t place = from + 1 + random() % (to - from - 1);
    Piece rest = piece;
    (isInTime ? rest.end : rest.top) = place;
    from = place;
    cut.push_back(rest);
  }
  std::shuffle(cut.begin(), cut.end(), random);
  Allocations allocations;
  for (const Piece &piece : cut)
    allocations.push_back(
        {piece.begin, piece.end - 1, (piece.top - piece.bottom) * kUnit});
  return allocations;
}

TEST(PlacementTest, PlacesCutRectanglesWithinAPercent) {
  constexpr int64_t kHeight = 1 << 14;
  for (size_t pieces : {150, 300, 450})
    for (unsigned seed : {1, 2, 3}) {
      SCOPED_TRACE(testing::Message() << pieces << " pieces, seed " << seed);
      Allocations allocations = cutRectangle(pieces, kHeight, seed);
      Placement placement = placeAllocations(allocations);
      checkPlacement(allocations, placement.offsets, placement.size);
      EXPECT_LE(placement.size, kHeight * kUnit * 101 / 100);
    }
}

/// Layers forward, each of which keeps two values, then backward, where they go
/// and gradients of weights stay.
static Allocations makeTraining(size_t layers, unsigned seed) {
  constexpr int64_t kLarge = 1024, kWide = 256, kNarrow = 64, kWeights = 24;
  std::mt19937 random(seed);
  Allocations allocations, gradients;
  std::vector<std::pair<size_t, size_t>> kept;
  int64_t time = 0;
  auto add = [&](int64_t units, unsigned mostTime) {
    int64_t end = time + 1 + random() % mostTime;
    allocations.push_back({time, end, units * kUnit});
    return allocations.size() - 1;
  };
  for (size_t layer = 0; layer < layers; ++layer) {
    size_t first = add(kNarrow, 1);
    for (int64_t units :
         {3 * kNarrow, kLarge, kLarge, kNarrow, kWide, kWide, kNarrow}) {
      add(units, 2);
      ++time;
    }
    kept.emplace_back(first, allocations.size() - 1);
  }
  for (auto [first, second] : llvm::reverse(kept)) {
    for (int64_t units : {kNarrow, kWide, kWide, kNarrow, 3 * kNarrow, kLarge,
                          kLarge, kLarge, 3 * kNarrow, kNarrow, kNarrow}) {
      add(units, 3);
      if (random() % 2)
        gradients.push_back(
            {time, 0, kWeights / int64_t(1 + random() % 3) * kUnit});
      ++time;
    }
    allocations[first].end = allocations[second].end = time - random() % 6;
  }
  for (Allocation &gradient : gradients) {
    gradient.end = time;
    allocations.push_back(gradient);
  }
  return allocations;
}

/// Where neither orders by size nor the exact search leave so little.
TEST(PlacementTest, PlacesTrainingsWithinHalfAPercent) {
  for (unsigned seed : {2, 7}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Allocations allocations = makeTraining(24, seed);
    Placement placement = placeAllocations(allocations);
    checkPlacement(allocations, placement.offsets, placement.size);
    EXPECT_LE(placement.size, getMaxLive(allocations) * 1005 / 1000);
  }
}

static Allocations makeRandom(size_t count, int64_t times, unsigned seed) {
  std::mt19937 random(seed);
  Allocations allocations;
  for (size_t i = 0; i < count; ++i) {
    int64_t begin = random() % times;
    allocations.push_back({begin, begin + int64_t(random() % (times - begin)),
                           kUnit * int64_t(1 + random() % 9)});
  }
  return allocations;
}

/// Each in turn as low as it can lie: some order gives the best placement.
static int64_t findBest(const Allocations &allocations) {
  std::vector<size_t> order(allocations.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(order.size());
    int64_t size = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const Allocation &own = allocations[order[i]];
      int64_t &offset = offsets[order[i]];
      auto isFree = [&](size_t j) {
        return areApart(own, offset, allocations[order[j]], offsets[order[j]]);
      };
      for (size_t j = 0; j < i;)
        if (isFree(j))
          ++j;
        else {
          offset += kUnit;
          j = 0;
        }
      size = std::max(size, offset + own.bytes);
    }
    best = std::min(best, size);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

/// Compared with all orders.
TEST(PlacementTest, IsExactForFew) {
  constexpr unsigned kSeeds = 150;
  // The best is 14 units, though 13 at most are live at once.
  Allocations above{{0, 4, 5}, {5, 7, 7}, {4, 4, 3}, {0, 3, 6},
                    {6, 7, 4}, {4, 5, 2}, {3, 5, 1}, {4, 6, 2}};
  for (Allocation &allocation : above)
    allocation.bytes *= kUnit;
  EXPECT_EQ(getMaxLive(above), 13 * kUnit);
  for (unsigned seed = 0; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Allocations allocations = seed == kSeeds ? above : makeRandom(6, 6, seed);
    int64_t best = findBest(allocations);
    Placement placement = placeAllocations(allocations);
    checkPlacement(allocations, placement.offsets, placement.size);
    EXPECT_EQ(placement.size, best);
    int64_t steps = 1'000'000;
    auto packed = packWithin(allocations, best, steps);
    ASSERT_TRUE(packed);
    checkPlacement(allocations, *packed, best);
    EXPECT_FALSE(packWithin(allocations, best - kUnit, steps));
    EXPECT_GT(steps, 0) << "the search did not end";
    EXPECT_EQ(best > getMaxLive(allocations), seed == kSeeds);
  }
}

/// In a tenth more than is needed.
TEST(PlacementTest, FindsOrders) {
  for (unsigned seed : {1, 2, 3}) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    Allocations allocations = makeRandom(200, 60, seed);
    int64_t capacity = getMaxLive(allocations) * 11 / 10 / kUnit * kUnit;
    std::vector<int64_t> offsets(allocations.size());
    int64_t steps = 1'000'000'000;
    ASSERT_TRUE(findOrder(allocations, capacity, offsets, steps));
    EXPECT_GT(steps, 0);
    checkPlacement(allocations, offsets, capacity);
    // There is no place in less than is live.
    std::vector<int64_t> before = offsets;
    steps = 1'000'000;
    EXPECT_FALSE(findOrder(allocations, getMaxLive(allocations) - kUnit,
                           offsets, steps));
    EXPECT_LE(steps, 0);
    EXPECT_EQ(offsets, before);
  }
}

TEST(PlacementTest, SaysWhatItTook) {
  Allocations allocations = cutRectangle(300, 1 << 14, 1);
  int64_t steps = 200'000;
  EXPECT_FALSE(packWithin(allocations, getMaxLive(allocations), steps));
  EXPECT_LE(steps, 0);
  EXPECT_GT(steps, -10'000) << "it took more than there was";
}

/// What lives all the time lies below what falls apart without it.
TEST(PlacementTest, PlacesPartsApart) {
  Allocations allocations{{0, 9, kUnit}, {0, 4, 2 * kUnit}, {5, 9, 3 * kUnit}};
  Placement placement = placeAllocations(allocations);
  EXPECT_EQ(placement.offsets, (std::vector<int64_t>{0, kUnit, kUnit}));
  EXPECT_EQ(placement.size, 4 * kUnit);
  EXPECT_EQ(placeAllocations({}).size, 0);
}

/// What has no order in time with another one is kept apart from it, too: where
/// all are, all lie side by side.
TEST(PlacementTest, KeepsUnorderedOnesApart) {
  std::mt19937 random(1);
  for (unsigned seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    size_t count = seed % 2 ? 8 : 60;
    Allocations allocations = makeRandom(count, 30, seed);
    std::vector<llvm::BitVector> unordered(count, llvm::BitVector(count));
    bool isAll = seed < 4;
    for (unsigned i = 0; i < count; ++i)
      for (unsigned j = 0; j < i; ++j)
        if (isAll || random() % 6 == 0) {
          unordered[i].set(j);
          unordered[j].set(i);
        }
    int64_t sum = 0;
    for (auto [i, allocation] : llvm::enumerate(allocations)) {
      allocation.id = unsigned(i);
      allocation.unordered = &unordered[i];
      sum += allocation.bytes;
    }
    Placement placement = placeAllocations(allocations);
    checkPlacement(allocations, placement.offsets, placement.size);
    EXPECT_GE(placement.size, getMaxLive(allocations));
    EXPECT_LE(placement.size, sum);
    if (isAll)
      EXPECT_EQ(placement.size, sum);
  }
}
