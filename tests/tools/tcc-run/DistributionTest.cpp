// Norms and buckets of elements.

#include "tools/tcc-run/Distribution.h"

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace tcc::tools;
using tcc::runtime::DType;

template <typename T>
static Distribution measureAll(DType dtype, std::vector<T> values) {
  return measure(dtype, std::as_bytes(std::span(values)));
}

static double countAll(const Distribution &found) {
  double count = 0;
  for (const Bucket &bucket : found.buckets)
    count += bucket.count;
  return count;
}

TEST(DistributionTest, CountsElements) {
  std::vector<float> values;
  for (int i = 0; i <= 300; ++i)
    values.push_back(static_cast<float>(i) / 100);
  Distribution found = measureAll(DType::f32, values);
  ASSERT_EQ(found.buckets.size(), 30u);
  EXPECT_EQ(found.buckets.front().begin, 0);
  EXPECT_EQ(found.buckets.back().end, 3);
  EXPECT_EQ(countAll(found), 301);
  for (size_t i = 0; i < 30; ++i) {
    EXPECT_NEAR(found.buckets[i].begin, 0.1 * double(i), 1e-9);
    EXPECT_NEAR(found.buckets[i].count, 10, 1) << i;
  }
  EXPECT_NEAR(found.norm, std::sqrt(300 * 301 * 601 / 6e4), 1e-5);
}

TEST(DistributionTest, KnowsTypes) {
  // 1, -2 and 0.5.
  std::vector<uint16_t> brain = {0x3f80, 0xc000, 0x3f00};
  std::vector<uint16_t> half = {0x3c00, 0xc000, 0x3800};
  for (const Distribution &found :
       {measureAll(DType::bf16, brain), measureAll(DType::f16, half)}) {
    EXPECT_EQ(found.norm, std::sqrt(5.25));
    EXPECT_EQ(found.buckets.front().begin, -2);
    EXPECT_EQ(found.buckets.back().end, 1);
    EXPECT_EQ(countAll(found), 3);
  }
}

TEST(DistributionTest, HasOneBucketForEqualElements) {
  Distribution found = measureAll<float>(DType::f32, {2, 2});
  ASSERT_EQ(found.buckets.size(), 1u);
  EXPECT_EQ(found.buckets[0].begin, 1.5);
  EXPECT_EQ(found.buckets[0].end, 2.5);
  EXPECT_EQ(found.buckets[0].count, 2);
  EXPECT_TRUE(measureAll<float>(DType::f32, {}).buckets.empty());
  EXPECT_EQ(measureAll<float>(DType::f32, {}).norm, 0);
}

TEST(DistributionTest, LeavesOutWhatIsNotFinite) {
  Distribution found =
      measureAll<float>(DType::f32, {1, NAN, INFINITY, -INFINITY, 3});
  EXPECT_TRUE(std::isnan(found.norm));
  EXPECT_EQ(countAll(found), 2);
  EXPECT_EQ(found.buckets.front().begin, 1);
  EXPECT_EQ(found.buckets.back().end, 3);
  EXPECT_EQ(measureAll<float>(DType::f32, {INFINITY}).norm, INFINITY);
  EXPECT_TRUE(measureAll<float>(DType::f32, {INFINITY}).buckets.empty());
}

TEST(DistributionTest, StandsExtremes) {
  constexpr double kMost = std::numeric_limits<double>::max();
  Distribution found = measureAll<double>(DType::f64, {-kMost, 0, kMost});
  EXPECT_EQ(countAll(found), 3);
  EXPECT_EQ(found.buckets.front().count, 1);
  EXPECT_EQ(found.buckets.back().count, 1);
  constexpr double kLeast = std::numeric_limits<double>::denorm_min();
  EXPECT_EQ(countAll(measureAll<double>(DType::f64, {0, kLeast})), 2);
}
