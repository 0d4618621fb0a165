// What the real cuDNN says of our descriptors: it plans for a GPU that is not
// there from the properties of one. Nothing is computed.

#include "runtime/devices/libraries/CudnnLibrary.h"
#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using tcc::format::Activation;
using tcc::format::DType;

/// Without a device, cuDNN forgets the state of a cuBLASLt that does not start.
extern "C" const char *__lsan_default_suppressions() {
  return "leak:cublasLtCreate\n";
}

namespace {

constexpr size_t kFirstWithProperties = 91100; ///< 9.11
constexpr size_t kWorkspace = 32 << 20;

class RealCudnnTest : public testing::TestWithParam<DType> {
protected:
  void SetUp() override {
    Result<const Cudnn *> real = findCudnn(nullptr);
    if (!real.ok())
      GTEST_SKIP() << "not available: " << real.takeStatus().message();
    if ((*real)->getVersion() < kFirstWithProperties)
      GTEST_SKIP() << "not available: cuDNN " << (*real)->getVersion();
    std::stringstream properties;
    properties << std::ifstream(TCC_DEVICE_PROPERTIES).rdbuf();
    auto opened = CudnnLibrary::openWithout(**real, properties.str());
    ASSERT_TRUE(opened.ok()) << opened.takeStatus().message();
    library = std::move(*opened);
  }

  static StridedImage channelsLast(std::vector<int64_t> extents) {
    std::vector<int64_t> strides(extents.size());
    int64_t step = strides[1] = 1;
    step = extents[1];
    for (size_t axis = extents.size(); axis-- > 2; step *= extents[axis])
      strides[axis] = step;
    strides[0] = step;
    return {GetParam(), std::move(extents), std::move(strides), 256};
  }
  /// 3 x 3, padded so that a stride of 1 keeps the size.
  static Convolution convolve(int64_t batch, int64_t channels, int64_t filters,
                              int64_t size, int64_t stride) {
    int64_t to = (size - 1) / stride + 1;
    return {channelsLast({batch, channels, size, size}),
            channelsLast({filters, channels, 3, 3}),
            channelsLast({batch, filters, to, to}),
            std::nullopt,
            /*hasBias=*/true,
            {1, 1},
            {1, 1},
            {stride, stride},
            {1, 1},
            Activation::relu,
            /*tf32=*/GetParam() == DType::f32};
  }
  /// Of the filter of `forward`.
  static Convolution deriveFilter(const Convolution &forward) {
    Convolution gradient = forward;
    std::swap(gradient.filter, gradient.result);
    gradient.hasBias = false;
    gradient.activation = Activation::none;
    gradient.kind = tcc::format::ConvolutionKind::filter_gradient;
    return gradient;
  }
  bool isPlanned(const Convolution &convolution, size_t bytes = kWorkspace) {
    auto plan = library->plan(convolution, nullptr, bytes);
    EXPECT_TRUE(plan.ok()) << plan.takeStatus().message();
    return plan.ok() && *plan;
  }

  std::unique_ptr<CudnnLibrary> library;
};

} // namespace

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

/// Why the compiler stores what convolutions of narrow floats sum so, too.
TEST_P(RealCudnnTest, StoresAsItReads) {
  Convolution sums = convolve(32, 64, 64, 56, 1);
  sums.hasBias = false;
  sums.activation = Activation::none;
  for (Convolution wide : {sums, deriveFilter(sums)}) {
    wide.result.dtype = DType::f32;
    EXPECT_EQ(isPlanned(wide), GetParam() == DType::f32);
  }
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
                         [](const auto &test) {
                           return test.param == DType::f16    ? "f16"
                                  : test.param == DType::bf16 ? "bf16"
                                                              : "tf32";
                         });
