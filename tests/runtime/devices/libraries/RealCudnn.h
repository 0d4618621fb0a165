//===- RealCudnn.h - Tests of what the real cuDNN plans ---------*- C++ -*-===//
//
// It plans for a GPU that is not there from the properties of one. Nothing is
// computed.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_REALCUDNN_H
#define TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_REALCUDNN_H

#include "runtime/devices/libraries/CudnnLibrary.h"
#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

namespace tcc::tests {

using format::Activation;
using format::DType;
using runtime::Result;
using runtime::cuda::Convolution;
using runtime::cuda::Cudnn;
using runtime::cuda::CudnnLibrary;
using runtime::cuda::StridedImage;

inline constexpr size_t kFirstWithProperties = 91100; ///< 9.11
inline constexpr size_t kWorkspace = 32 << 20;

class RealCudnnTest : public testing::TestWithParam<DType> {
protected:
  void SetUp() override {
    Result<const Cudnn *> real = runtime::cuda::findCudnn(nullptr);
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
    gradient.kind = format::ConvolutionKind::filter_gradient;
    return gradient;
  }
  bool isPlanned(const Convolution &convolution, size_t bytes = kWorkspace) {
    auto plan = library->plan(convolution, nullptr, bytes);
    EXPECT_TRUE(plan.ok()) << plan.takeStatus().message();
    return plan.ok() && *plan;
  }

  std::unique_ptr<CudnnLibrary> library;
};

inline std::string nameType(const testing::TestParamInfo<DType> &test) {
  return test.param == DType::f16    ? "f16"
         : test.param == DType::bf16 ? "bf16"
                                     : "tf32";
}

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_REALCUDNN_H
