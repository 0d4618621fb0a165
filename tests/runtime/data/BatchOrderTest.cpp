#include "runtime/data/BatchOrder.h"
#include "runtime/data/BucketSizes.h"
#include "runtime/data/SortBySize.h"
#include "tests/runtime/Fixture.h"

#include <limits>
#include <random>
#include <set>

using namespace tcc::runtime;
using namespace tcc::tests;

namespace {

/// Samples of these lengths, one tensor of i64; negative ones are damaged.
class OfLengths final : public SampleSource {
public:
  explicit OfLengths(std::vector<int64_t> lengths)
      : lengths(std::move(lengths)) {}
  int64_t sampleCount() const override { return int64_t(lengths.size()); }
  Result<SampleRoom> needs(int64_t number) const override {
    if (lengths[number] < 0)
      return makeError(Code::BadData, "sample ", number, " is damaged");
    return SampleRoom{size_t(lengths[number]) * sizeof(int64_t)};
  }
  Status read(int64_t, int64_t, SampleParts) const override { return Status(); }

private:
  std::vector<int64_t> lengths;
};

using Shapes = std::vector<std::vector<int64_t>>;

Result<SortedSamples> sortLengths(std::vector<int64_t> lengths, Shapes shapes,
                                  bool skipsBad = false) {
  BatchTensor tensor = BatchTensor::of("x", DType::i64, std::move(shapes));
  return sortBySize(OfLengths(std::move(lengths)), std::span(&tensor, 1),
                    skipsBad);
}

SortedSamples bucketsOf(std::vector<int64_t> batches,
                        std::vector<int64_t> counts) {
  SortedSamples sorted;
  uint32_t next = 0;
  for (size_t i = 0; i < batches.size(); ++i) {
    sorted.buckets.push_back({i, batches[i], {}});
    for (int64_t j = 0; j < counts[i]; ++j)
      sorted.buckets.back().samples.push_back(next++);
  }
  return sorted;
}

/// The least padding of all ways to choose sizes, of which the last is the
/// longest length.
double tryAll(const Lengths &lengths, size_t count) {
  std::vector<int64_t> all;
  for (auto [length, samples] : lengths)
    all.push_back(length);
  double least = 1;
  for (uint32_t chosen = 0; chosen < 1u << (all.size() - 1); ++chosen) {
    if (size_t(__builtin_popcount(chosen)) + 1 > count)
      continue;
    std::vector<BucketSize> sizes;
    int64_t samples = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      samples += lengths.at(all[i]);
      if (i + 1 == all.size() || chosen >> i & 1) {
        sizes.push_back({all[i], samples});
        samples = 0;
      }
    }
    least = std::min(least, paddingOf(lengths, sizes));
  }
  return least;
}

} // namespace

TEST(BatchOrder, HasEachSampleOnceAnEpoch) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 50; ++trial) {
    std::vector<int64_t> batches, counts;
    int64_t samples = 0;
    for (int i = 0; i < 4; ++i) {
      batches.push_back(1 + random() % 5);
      counts.push_back(random() % 12);
      samples += counts.back();
    }
    BatchOrder order(bucketsOf(batches, counts), trial, /*shuffles=*/true,
                     /*fills=*/false);
    EXPECT_EQ(order.sampleCount(), samples);
    EXPECT_LT(samples - order.samplesPerEpoch(), batches.back());
    for (int64_t epoch : {0, 5}) {
      std::set<int64_t> seen;
      std::vector<int64_t> numbers;
      int64_t first = epoch * order.batchesPerEpoch();
      for (int64_t i = 0; i < order.batchesPerEpoch(); ++i) {
        BatchOrder::Batch batch = order.at(first + i);
        EXPECT_EQ(batch.epoch, epoch);
        order.list(batch, numbers);
        EXPECT_EQ(int64_t(numbers.size()), order.sizeOf(batch));
        for (int64_t number : numbers) {
          EXPECT_TRUE(seen.insert(number).second);
          // In its own bucket, or a later one.
          int64_t end = 0;
          for (size_t bucket = 0; bucket <= batch.bucket; ++bucket)
            end += counts[bucket];
          EXPECT_LT(number, end);
        }
      }
      EXPECT_EQ(int64_t(seen.size()), order.samplesPerEpoch());
    }
  }
}

TEST(BatchOrder, MixesBuckets) {
  BatchOrder order(bucketsOf({1, 1}, {50, 50}), 1, /*shuffles=*/true, false);
  int64_t early = 0;
  for (int64_t i = 0; i < 50; ++i)
    early += order.at(i).bucket == 0;
  EXPECT_GT(early, 15);
  EXPECT_LT(early, 35);
  BatchOrder lying(bucketsOf({2, 1}, {5, 2}), 1, /*shuffles=*/false, false);
  EXPECT_EQ(lying.batchesPerEpoch(), 5);
  std::vector<int64_t> numbers, all;
  for (int64_t i = 0; i < 5; ++i) {
    lying.list(lying.at(i), numbers);
    all.insert(all.end(), numbers.begin(), numbers.end());
  }
  EXPECT_EQ(all, (std::vector<int64_t>{0, 1, 2, 3, 5, 6, 4}));
}

/// What fills up the last batch does not count.
TEST(BatchOrder, FillsUpTheLargestSize) {
  BatchOrder order(bucketsOf({2, 4}, {3, 2}), 1, /*shuffles=*/false,
                   /*fills=*/true);
  EXPECT_EQ(order.batchesPerEpoch(), 2);
  EXPECT_EQ(order.samplesPerEpoch(), 5);
  BatchOrder::Batch last = order.at(1);
  EXPECT_EQ(order.countedOf(last), 3);
  std::vector<int64_t> numbers;
  order.list(last, numbers);
  EXPECT_EQ(numbers, (std::vector<int64_t>{3, 4, 2, 3}));
}

TEST(SortBySize, TakesTheSmallestSize) {
  auto sorted = unwrap(sortLengths({3, 8, 4, 1, 5}, {{2, 8}, {4, 4}, {6, 4}}));
  ASSERT_EQ(sorted.buckets.size(), 2);
  EXPECT_EQ(sorted.buckets[0].variant, 2); // of two alike the larger batch
  EXPECT_EQ(sorted.buckets[0].batchSize, 6);
  EXPECT_EQ(sorted.buckets[0].samples, (std::vector<uint32_t>{0, 2, 3}));
  EXPECT_EQ(sorted.buckets[1].samples, (std::vector<uint32_t>{1, 4}));
  EXPECT_EQ(sorted.room, (3 * 4 + 2 * 8) * sizeof(int64_t));
  EXPECT_EQ(sorted.padding, (1 + 0 + 3 + 0 + 3) * sizeof(int64_t));
}

TEST(SortBySize, LeavesOutDamagedSamples) {
  Shapes shapes = {{2, 4}, {2, 8}};
  EXPECT_THAT(sortLengths({3, -1, 4, -1}, shapes).takeStatus(),
              failsWith(Code::BadData, "sample 1 is damaged"));
  auto sorted = unwrap(sortLengths({3, -1, 4, -1}, shapes, /*skipsBad=*/true));
  EXPECT_EQ(sorted.buckets[0].samples, (std::vector<uint32_t>{0, 2}));
}

TEST(SortBySize, RefusesWhatHasNoOrder) {
  EXPECT_THAT(sortLengths({3}, {{2, 4, 2}, {2, 4, 3}}).takeStatus(),
              failsWith(Code::Usage, "in axes after axis 1"));
  BatchTensor tensors[] = {BatchTensor::of("x", DType::i64, {{1, 4}, {1, 8}}),
                           BatchTensor::of("y", DType::i64, {{1, 8}, {1, 4}})};
  EXPECT_THAT(
      sortBySize(OfLengths({3}), tensors, false).takeStatus(),
      failsWith(Code::Usage, "neither has room for all samples of the other"));
}

TEST(BucketSizes, PadLeast) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 40; ++trial) {
    Lengths lengths;
    while (lengths.size() < 9)
      lengths[1 + random() % 40] = 1 + random() % 20;
    for (size_t count : {1, 2, 3, 5, 9, 12}) {
      auto sizes = chooseSizes(lengths, count, /*multiple=*/1);
      EXPECT_LE(sizes.size(), count);
      EXPECT_EQ(sizes.back().size, lengths.rbegin()->first);
      EXPECT_NEAR(paddingOf(lengths, sizes), tryAll(lengths, count), 1e-12);
    }
    int64_t samples = 0;
    for (auto [size, own] : chooseSizes(lengths, 3, /*multiple=*/8)) {
      EXPECT_EQ(size % 8, 0);
      samples += own;
    }
    for (auto [length, own] : lengths)
      samples -= own;
    EXPECT_EQ(samples, 0);
  }
}
