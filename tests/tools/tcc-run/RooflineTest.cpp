// What products reach by the instructions that this CPU has.

#include "tools/tcc-run/Roofline.h"
#include "runtime/base/CpuFeatures.h"

#include <gtest/gtest.h>

using namespace tcc::runtime;
using namespace tcc::tools;

static constexpr double kSeconds = 0.01;

static double measureOne(DType operands) {
  return measureProducts(operands, /*threads=*/1, kSeconds);
}

/// Other processes change the frequency between two measurements.
TEST(Roofline, MeasuresProducts) {
  double peak = measurePeak(kSeconds);
  EXPECT_GT(peak, 1);
  EXPECT_NEAR(measureOne(DType::f32) / peak, 1, 0.5);
  EXPECT_NEAR(measureOne(DType::f64) / peak, 0.5, 0.25);
  EXPECT_GT(measureProducts(DType::f32, /*threads=*/2, kSeconds), 0.6 * peak);
}

TEST(Roofline, MultipliesNarrowNumbersAsF32WhereThereIsNoOtherWay) {
  if (hasCpuFeature("avx512bf16"))
    GTEST_SKIP() << "this CPU has products of bf16";
  EXPECT_NEAR(measureOne(DType::bf16) / measurePeak(kSeconds), 1, 0.5);
}

/// A pair is two products; some CPUs begin half or a quarter as many of these
/// instructions in a cycle.
TEST(Roofline, MeasuresPairs) {
  if (!hasCpuFeature("avx512bf16") || hasCpuFeature("amx-bf16"))
    GTEST_SKIP() << "this CPU does not multiply bf16 in pairs";
  double ratio = measureOne(DType::bf16) / measurePeak(kSeconds);
  EXPECT_GT(ratio, 0.35);
  EXPECT_LT(ratio, 3);
}

/// 2048 operations in a cycle, beside 64 or so of f32.
TEST(Roofline, MeasuresTiles) {
  if (!hasCpuFeature("amx-bf16") || !hasCpuFeature("amx-tile"))
    GTEST_SKIP() << "this CPU has no tiles, or the system keeps them back";
  double ratio = measureOne(DType::bf16) / measurePeak(kSeconds);
  EXPECT_GT(ratio, 4);
  EXPECT_LT(ratio, 64);
}
