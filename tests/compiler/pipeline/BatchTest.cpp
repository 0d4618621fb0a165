#include "compiler/pipeline/Batch.h"
#include "gtest/gtest.h"

using namespace tcc;

namespace {

/// What a budget of 1000 bytes holds, and the trials that it took.
struct Search {
  Search(std::optional<int64_t> global, int64_t (*bytesOf)(int64_t),
         bool knowsBytes = true) {
    choice =
        findLargestBatch(getBatches(global), kBudget, [&](int64_t samples) {
          ++trials;
          int64_t bytes = bytesOf(samples);
          return BatchTrial{bytes <= kBudget ? BatchTrial::Fits
                                             : BatchTrial::TooLarge,
                            knowsBytes ? bytes : 0};
        });
  }

  static constexpr int64_t kBudget = 1000;
  BatchChoice choice;
  int trials = 0;
};

} // namespace

static int64_t even(int64_t samples) { return 100 + 9 * samples; }
/// Blocks of samples, and more for each where there are many.
static int64_t uneven(int64_t samples) {
  return 100 + (samples + 7) / 8 * 8 + samples * samples / 16;
}
static int64_t large(int64_t) { return 1001; }
static int64_t small(int64_t) { return 1; }

TEST(BatchTest, FollowsALine) {
  Search search(std::nullopt, even);
  EXPECT_EQ(search.choice.samples, 100);
  EXPECT_EQ(search.choice.text,
            "100, the most samples that the memory budget holds: 101 do not "
            "fit");
  EXPECT_LE(search.trials, 4);
}

TEST(BatchTest, FindsTheLastThatFits) {
  int64_t largest = 1;
  while (uneven(largest + 1) <= Search::kBudget)
    ++largest;
  for (bool knowsBytes : {true, false}) {
    Search search(std::nullopt, uneven, knowsBytes);
    EXPECT_EQ(search.choice.samples, largest);
    EXPECT_LE(search.trials, 14);
  }
}

TEST(BatchTest, DividesWhatAnUpdateTakes) {
  EXPECT_EQ(getBatches(12), (std::vector<int64_t>{1, 2, 3, 4, 6, 12}));
  EXPECT_EQ(Search(96, even).choice.samples, 96);
  EXPECT_EQ(Search(102, even).choice.text,
            "51, the most samples that the memory budget holds: 102 do not "
            "fit");
  EXPECT_EQ(Search(1, even).choice.samples, 1);
}

TEST(BatchTest, EndsWhereNothingOrAllFits) {
  Search none(std::nullopt, large);
  EXPECT_EQ(none.choice.samples, 0);
  EXPECT_EQ(none.trials, 2);
  EXPECT_EQ(Search(std::nullopt, small).choice.samples, 1 << 16);
  auto fail = [](int64_t) { return BatchTrial{}; };
  EXPECT_EQ(findLargestBatch(getBatches(8), 1, fail).samples, 0);
}
