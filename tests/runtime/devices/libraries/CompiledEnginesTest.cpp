// Plans of cuDNN with engines that it compiles while it plans. It asks a driver
// to load them: without one, StubDriver.cpp stands for it.

#include "tests/runtime/devices/libraries/RealCudnn.h"

#include <dlfcn.h>

using namespace tcc::tests;

namespace {

class CompiledEnginesTest : public RealCudnnTest {
protected:
  void SetUp() override {
    if (!dlopen("libcuda.so.1", RTLD_NOW))
      ASSERT_NE(dlopen(TCC_STUB_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr);
    RealCudnnTest::SetUp();
  }
};

} // namespace

/// No engine that cuDNN brings stores f32 where it reads bf16 or f16.
TEST_P(CompiledEnginesTest, StoreSumsInF32) {
  LibraryWork sums = convolve(32, 64, 64, 56, 1);
  sums.steps.clear();
  sums.result.dtype = DType::f32;
  EXPECT_TRUE(isPlanned(sums));
}

/// Nor has one of them a function but relu.
TEST_P(CompiledEnginesTest, ComputeFunctions) {
  for (StepKind function : {StepKind::silu, StepKind::sigmoid, StepKind::tanh,
                            StepKind::gelu, StepKind::gelu_tanh})
    for (int64_t batch : {1, 32}) {
      LibraryWork all = convolve(batch, 64, 64, 56, 1);
      all.steps = makeSteps(all, {StepKind::add, StepKind::bias, function});
      EXPECT_TRUE(isPlanned(all)) << batch << " " << EnumNameStepKind(function);
      all.steps = makeSteps(all, {StepKind::bias, function});
      EXPECT_TRUE(isPlanned(all)) << batch << " " << EnumNameStepKind(function);
    }
}

INSTANTIATE_TEST_SUITE_P(, CompiledEnginesTest,
                         testing::Values(DType::bf16, DType::f16), nameType);
