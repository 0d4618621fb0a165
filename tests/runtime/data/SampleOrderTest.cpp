#include "runtime/data/SampleOrder.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <map>
#include <numeric>
#include <vector>

using namespace tcc::runtime;

namespace {

using Places = std::vector<int64_t>;

Places listOrder(const SampleOrder &order, int64_t epoch, int64_t count) {
  EpochOrder ofEpoch = order.of(epoch);
  Places samples;
  for (int64_t place = 0; place < count; ++place)
    samples.push_back(ofEpoch.at(place));
  return samples;
}

/// How many standard deviations chi-square of what was counted is above what
/// equally likely bins have.
double getExcess(const std::vector<double> &counted) {
  double sum = std::accumulate(counted.begin(), counted.end(), 0.0);
  double expected = sum / counted.size(), square = 0;
  for (double count : counted)
    square += (count - expected) * (count - expected) / expected;
  double freedom = counted.size() - 1.0;
  return (square - freedom) / std::sqrt(2 * freedom);
}

constexpr double kMostExcess = 4; // once in some 10,000 seeds

} // namespace

TEST(SampleOrder, IsAPermutationOfSeedAndEpoch) {
  for (int64_t count : {1, 2, 3, 5, 63, 64, 65, 100, 4096, 99991}) {
    Places all(count);
    std::iota(all.begin(), all.end(), 0);
    SampleOrder order(count, 1, true), again(count, 1, true);
    Places first = listOrder(order, 0, count);
    Places sorted = first;
    std::ranges::sort(sorted);
    EXPECT_EQ(sorted, all) << count;
    EXPECT_EQ(first, listOrder(again, 0, count)) << count;
    EXPECT_EQ(listOrder(SampleOrder(count, 1, false), 3, count), all) << count;
    if (count < 100)
      continue;
    EXPECT_NE(first, all);
    EXPECT_NE(first, listOrder(order, 1, count));
    EXPECT_NE(first, listOrder(SampleOrder(count, 2, true), 0, count));
  }
}

// Checkpoints go on with it: another order is another version.
TEST(SampleOrder, IsThatOfItsVersion) {
  EXPECT_EQ(SampleOrder::kVersion, 2);
  EXPECT_THAT(listOrder(SampleOrder(100, 1, true), 0, 6),
              testing::ElementsAre(9, 73, 95, 41, 59, 63));
  EXPECT_THAT(listOrder(SampleOrder(1000000000, 7, true), 3, 4),
              testing::ElementsAre(356766739, 315195240, 748940787, 145094489));
}

TEST(SampleOrder, HasEachPermutationOfFewEquallyOften) {
  for (int64_t count : {2, 3, 4, 5}) {
    SampleOrder order(count, 7, true);
    std::map<Places, double> found;
    for (int64_t epoch = 0; epoch < 30'000; ++epoch)
      ++found[listOrder(order, epoch, count)];
    std::vector<double> counted;
    for (const auto &[permutation, times] : found)
      counted.push_back(times);
    EXPECT_EQ(counted.size(), std::lround(std::tgamma(count + 1.0)));
    EXPECT_LT(getExcess(counted), kMostExcess) << count;
  }
}

// Which sample comes at which place, and after which other.
TEST(SampleOrder, HasEachSampleAtEachPlace) {
  for (int64_t count : {10, 37, 64, 65, 100, 5000}) {
    SampleOrder order(count, 9, true);
    std::vector<double> places(std::min<int64_t>(count * count, 10'000));
    std::vector<double> distances(count - 1);
    for (int64_t epoch = 0; epoch < 200'000 / count; ++epoch) {
      Places samples = listOrder(order, epoch, count);
      for (int64_t i = 0; i < count; ++i) {
        ++places[(i * count + samples[i]) * places.size() / (count * count)];
        int64_t next = samples[(i + 1) % count];
        ++distances[(next + count - samples[i]) % count - 1];
      }
    }
    EXPECT_LT(getExcess(places), kMostExcess) << count;
    EXPECT_LT(getExcess(distances), kMostExcess) << count;
  }
}

TEST(SampleOrder, ScattersAMillionOfABillion) {
  constexpr int64_t kCount = 1'000'000'000, kBins = 1000;
  SampleOrder order(kCount, 3, true);
  std::vector<double> samples(kBins), distances(kBins);
  EpochOrder ofEpoch = order.of(4);
  int64_t last = ofEpoch.at(kCount - 1);
  for (int64_t place = 0; place < 1'000'000; ++place) {
    int64_t sample = ofEpoch.at(place);
    ++samples[sample * kBins / kCount];
    ++distances[(sample + kCount - last) % kCount * kBins / kCount];
    last = sample;
  }
  EXPECT_LT(getExcess(samples), kMostExcess);
  EXPECT_LT(getExcess(distances), kMostExcess);
  // No table, whatever the count.
  static_assert(sizeof(SampleOrder) + sizeof(EpochOrder) < 1024);
}
