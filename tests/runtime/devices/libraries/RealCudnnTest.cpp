// What the real cuDNN says of our descriptors, by the engines that it brings:
// those that it compiles need a driver (CompiledEnginesTest.cpp).

#include "tests/runtime/devices/libraries/RealCudnn.h"

using namespace tcc::tests;

/// Without a device, cuDNN forgets the state of a cuBLASLt that does not start.
extern "C" const char *__lsan_default_suppressions() {
  return "leak:cublasLtCreate\n";
}

/// Those of ResNet-50, with what may stand behind them.
TEST_P(RealCudnnTest, PlansWindowsOfResNet) {
  for (int64_t batch : {1, 8, 32})
    for (auto [channels, size, stride] : {std::array<int64_t, 3>{64, 56, 1},
                                          {128, 56, 2},
                                          {128, 28, 1},
                                          {256, 28, 2},
                                          {256, 14, 1},
                                          {512, 14, 2},
                                          {512, 7, 1}}) {
      SCOPED_TRACE(testing::Message() << batch << " x " << channels << " x "
                                      << size << " / " << stride);
      LibraryWork all = convolve(batch, channels, channels, size, stride);
      EXPECT_TRUE(isPlanned(all)) << "bias, relu";
      all.steps =
          makeSteps(all, {StepKind::add, StepKind::bias, StepKind::relu});
      EXPECT_TRUE(isPlanned(all)) << "addend, bias, relu";
      all.steps.pop_back();
      EXPECT_TRUE(isPlanned(all)) << "addend, bias";
      all.steps.clear();
      EXPECT_TRUE(isPlanned(all)) << "the sums alone";
    }
}

TEST_P(RealCudnnTest, PlansGradientsOfFilters) {
  for (auto [channels, size, stride] : {std::array<int64_t, 3>{64, 56, 1},
                                        {128, 56, 2},
                                        {256, 14, 1},
                                        {512, 7, 1}}) {
    SCOPED_TRACE(testing::Message()
                 << channels << " x " << size << " / " << stride);
    LibraryWork forward = convolve(32, channels, channels, size, stride);
    EXPECT_TRUE(isPlanned(deriveFilter(forward)));
  }
  LibraryWork stem = convolve(8, 3, 64, 224, 2);
  stem.rhs = channelsLast({64, 3, 7, 7});
  stem.window.padLow = stem.window.padHigh = {3, 3};
  EXPECT_TRUE(isPlanned(deriveFilter(stem))) << "stem";
  LibraryWork uneven = convolve(32, 64, 64, 56, 2);
  uneven.window.padLow = {0, 0};
  EXPECT_TRUE(isPlanned(deriveFilter(uneven))) << "padding of one side";
}

/// A filter may lie as its parameter does: channels before the window.
TEST_P(RealCudnnTest, PlansOtherFilters) {
  LibraryWork forward = convolve(32, 64, 64, 56, 1);
  forward.steps.clear();
  forward.rhs.strides = {64 * 9, 9, 3, 1};
  EXPECT_TRUE(isPlanned(forward)) << "forward";
  EXPECT_TRUE(isPlanned(deriveFilter(forward))) << "gradient";
}

TEST_P(RealCudnnTest, PlansOtherWindows) {
  LibraryWork stem = convolve(8, 3, 64, 224, 2);
  stem.rhs = channelsLast({64, 3, 7, 7});
  stem.window.padLow = stem.window.padHigh = {3, 3};
  EXPECT_TRUE(isPlanned(stem)) << "7 x 7 of three channels";
  EXPECT_TRUE(isPlanned(stem, 0)) << "without workspace";

  LibraryWork groups = convolve(8, 64, 64, 56, 1);
  groups.rhs = channelsLast({64, 16, 3, 3});
  EXPECT_TRUE(isPlanned(groups)) << "groups";
  groups.rhs = channelsLast({64, 1, 3, 3});
  EXPECT_TRUE(isPlanned(groups)) << "depthwise";

  LibraryWork asymmetric = convolve(8, 64, 64, 56, 2);
  asymmetric.window.padLow = {0, 0};
  EXPECT_TRUE(isPlanned(asymmetric)) << "padding of one side";

  LibraryWork line{.kind = WorkKind::convolution,
                   .lhs = channelsLast({8, 64, 56}),
                   .rhs = channelsLast({64, 64, 3}),
                   .result = channelsLast({8, 64, 56}),
                   .tf32 = GetParam() == DType::f32,
                   .window = {{1}, {1}, {1}, {1}}};
  line.steps = makeSteps(line, {StepKind::bias, StepKind::relu});
  EXPECT_TRUE(isPlanned(line)) << "1-d";
}

TEST_P(RealCudnnTest, RefusesShapesThatDoNotGoTogether) {
  LibraryWork wrong = convolve(8, 64, 64, 56, 1);
  wrong.result = channelsLast({8, 64, 55, 56});
  wrong.steps = makeSteps(wrong, {StepKind::bias, StepKind::relu});
  EXPECT_FALSE(isPlanned(wrong));
}

INSTANTIATE_TEST_SUITE_P(, RealCudnnTest,
                         testing::Values(DType::bf16, DType::f16, DType::f32),
                         nameType);
