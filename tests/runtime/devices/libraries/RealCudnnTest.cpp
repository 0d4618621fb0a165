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
      Convolution all = convolve(batch, channels, channels, size, stride);
      EXPECT_TRUE(isPlanned(all)) << "bias, relu";
      all.addend = all.result;
      EXPECT_TRUE(isPlanned(all)) << "addend, bias, relu";
      all.activation = Activation::none;
      EXPECT_TRUE(isPlanned(all)) << "addend, bias";
      all.addend.reset();
      all.hasBias = false;
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
    Convolution forward = convolve(32, channels, channels, size, stride);
    EXPECT_TRUE(isPlanned(deriveFilter(forward)));
  }
  Convolution stem = convolve(8, 3, 64, 224, 2);
  stem.filter = channelsLast({64, 3, 7, 7});
  stem.padLow = stem.padHigh = {3, 3};
  EXPECT_TRUE(isPlanned(deriveFilter(stem))) << "stem";
  Convolution uneven = convolve(32, 64, 64, 56, 2);
  uneven.padLow = {0, 0};
  EXPECT_TRUE(isPlanned(deriveFilter(uneven))) << "padding of one side";
}

/// A filter may lie as its parameter does: channels before the window.
TEST_P(RealCudnnTest, PlansOtherFilters) {
  Convolution forward = convolve(32, 64, 64, 56, 1);
  forward.hasBias = false;
  forward.activation = Activation::none;
  forward.filter.strides = {64 * 9, 9, 3, 1};
  EXPECT_TRUE(isPlanned(forward)) << "forward";
  EXPECT_TRUE(isPlanned(deriveFilter(forward))) << "gradient";
}

TEST_P(RealCudnnTest, PlansOtherWindows) {
  Convolution stem = convolve(8, 3, 64, 224, 2);
  stem.filter = channelsLast({64, 3, 7, 7});
  stem.padLow = stem.padHigh = {3, 3};
  EXPECT_TRUE(isPlanned(stem)) << "7 x 7 of three channels";
  EXPECT_TRUE(isPlanned(stem, 0)) << "without workspace";

  Convolution groups = convolve(8, 64, 64, 56, 1);
  groups.filter = channelsLast({64, 16, 3, 3});
  EXPECT_TRUE(isPlanned(groups)) << "groups";
  groups.filter = channelsLast({64, 1, 3, 3});
  EXPECT_TRUE(isPlanned(groups)) << "depthwise";

  Convolution asymmetric = convolve(8, 64, 64, 56, 2);
  asymmetric.padLow = {0, 0};
  EXPECT_TRUE(isPlanned(asymmetric)) << "padding of one side";

  Convolution line{channelsLast({8, 64, 56}),
                   channelsLast({64, 64, 3}),
                   channelsLast({8, 64, 56}),
                   std::nullopt,
                   true,
                   {1},
                   {1},
                   {1},
                   {1},
                   Activation::relu,
                   /*tf32=*/GetParam() == DType::f32};
  EXPECT_TRUE(isPlanned(line)) << "1-d";
}

TEST_P(RealCudnnTest, RefusesShapesThatDoNotGoTogether) {
  Convolution wrong = convolve(8, 64, 64, 56, 1);
  wrong.result = channelsLast({8, 64, 55, 56});
  EXPECT_FALSE(isPlanned(wrong));
}

INSTANTIATE_TEST_SUITE_P(, RealCudnnTest,
                         testing::Values(DType::bf16, DType::f16, DType::f32),
                         nameType);
