//===- RealCudnn.h - Tests of what the real cuDNN plans ---------*- C++ -*-===//
//
// It plans for a GPU that is not there from the properties of one. Nothing is
// computed.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_REALCUDNN_H
#define TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_REALCUDNN_H

#include "runtime/devices/libraries/CudnnLibrary.h"
#include "tests/runtime/devices/libraries/Works.h"
#include "gtest/gtest.h"

#include <fstream>
#include <sstream>

namespace tcc::tests {

using format::DType;
using format::StepKind;
using format::WorkKind;
using runtime::LibraryWork;
using runtime::Result;
using runtime::StridedView;
using runtime::cuda::Cudnn;
using runtime::cuda::CudnnLibrary;

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

  static StridedView channelsLast(const std::vector<int64_t> &extents) {
    StridedView view = makeImage(GetParam(), extents);
    view.alignment = 256;
    return view;
  }
  /// 3 x 3, padded so that a stride of 1 keeps the size, with a bias and relu.
  static LibraryWork convolve(int64_t batch, int64_t channels, int64_t filters,
                              int64_t size, int64_t stride) {
    int64_t to = (size - 1) / stride + 1;
    LibraryWork work{.kind = WorkKind::convolution,
                     .lhs = channelsLast({batch, channels, size, size}),
                     .rhs = channelsLast({filters, channels, 3, 3}),
                     .result = channelsLast({batch, filters, to, to}),
                     .tf32 = GetParam() == DType::f32,
                     .window = {{1, 1}, {1, 1}, {stride, stride}, {1, 1}}};
    work.steps = makeSteps(work, {StepKind::bias, StepKind::relu});
    return work;
  }
  /// Of the filter of `forward`.
  static LibraryWork deriveFilter(const LibraryWork &forward) {
    LibraryWork gradient = forward;
    std::swap(gradient.rhs, gradient.result);
    gradient.steps.clear();
    gradient.kind = WorkKind::filter_gradient;
    return gradient;
  }
  bool isPlanned(const LibraryWork &work, size_t bytes = kWorkspace) {
    EXPECT_TRUE(isWellFormed(work));
    auto plan = library->plan(work, nullptr, bytes);
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
