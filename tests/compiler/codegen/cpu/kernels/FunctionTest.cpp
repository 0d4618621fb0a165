//===- FunctionTest.cpp - Units in the last place of each function --------===//
//
// Inputs sample all binades of f32, both signs, denormals and special values.
//
//===----------------------------------------------------------------------===//

#include "tests/compiler/codegen/cpu/kernels/KernelHarness.h"

#include <bit>
#include <cmath>

using namespace tcc;

namespace {

struct FunctionRow {
  const char *op;
  long double (*reference)(long double);
  double ulps;
};

const FunctionRow kRows[] = {
    {"exp", std::exp, 1.1},     {"log", std::log, 0.8},
    {"log1p", std::log1p, 1.5}, {"tanh", std::tanh, 2.4},
    {"erf", std::erf, 1.3},     {"sqrt", std::sqrt, 0.5},
    {"sin", std::sin, 1},       {"cos", std::cos, 1},
    {"tan", std::tan, 1},       {"asin", std::asin, 1},
    {"acos", std::acos, 1},     {"atan", std::atan, 1},
    {"sinh", std::sinh, 2},     {"cosh", std::cosh, 2},
    {"asinh", std::asinh, 2},   {"acosh", std::acosh, 2},
    {"atanh", std::atanh, 2},
};

/// |x - y| in units in the last place of an f32 of y's size.
double getUlps(float x, long double y) {
  float rounded = float(y);
  if (x == rounded || (std::isnan(x) && std::isnan(rounded)))
    return 0;
  if (!std::isfinite(x) || !std::isfinite(rounded))
    return HUGE_VAL;
  int exponent = std::max(std::ilogb(rounded) - 23, -149);
  return double(std::fabs(x - y) / std::ldexp(1.0L, exponent));
}

constexpr int64_t kCount = 1 << 18;

HostTensor makeSamples(mlir::Type type) {
  HostTensor samples{mlir::cast<mlir::RankedTensorType>(type), {}};
  const uint32_t special[] = {0x00000000, 0x80000000, 0x7f800000, 0xff800000,
                              0x7fc00000, 0x00000001, 0x80000001, 0x7f7fffff,
                              0xff7fffff, 0x3f800000, 0xbf800000, 0x007fffff};
  // An odd stride over all bit patterns meets every binade.
  for (uint32_t i = 0; i < kCount; ++i) {
    uint32_t bits = i < std::size(special) ? special[i] : i * 67141637u;
    samples.elements.push_back(Scalar{.f = std::bit_cast<float>(bits)});
  }
  return samples;
}

class FunctionTest : public KernelHarness,
                     public testing::WithParamInterface<FunctionRow> {};

TEST_P(FunctionTest, isWithinItsBoundOnEachCpu) {
  std::string op = GetParam().op;
  parse(graph::KernelKind::pointwise, "!x = tensor<" + std::to_string(kCount) +
                                          "xf32>\n"
                                          R"(
    func.func @f(%x: !x) -> !x {
      %0 = graph.)" + op + R"( %x : (!x) -> !x
      return %0 : !x
    })");
  HostTensor samples = makeSamples(getFunction().getArgumentTypes()[0]);
  compile("x86-64-v3");
  KernelRun narrow = run(samples);
  compile();
  KernelRun wide = run(samples);
  EXPECT_TRUE(narrow.results == wide.results) << "bits depend on the CPU";
  const auto *values = reinterpret_cast<const float *>(wide.results[0].data());
  double worst = 0, worstInput = 0;
  for (int64_t i = 0; i < kCount; ++i) {
    double x = samples.elements[i].f;
    double ulps = getUlps(values[i], GetParam().reference(x));
    if (ulps > worst) {
      worst = ulps;
      worstInput = x;
    }
  }
  EXPECT_LE(worst, GetParam().ulps) << "at " << worstInput;
}

INSTANTIATE_TEST_SUITE_P(F32, FunctionTest, testing::ValuesIn(kRows),
                         [](const auto &info) {
                           return std::string(info.param.op);
                         });

} // namespace
