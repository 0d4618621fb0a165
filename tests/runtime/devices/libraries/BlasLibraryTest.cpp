// Products of all layouts through descriptions of cuBLASLt, which the simulated
// library reads back and computes from.

#include "runtime/devices/libraries/CublasLt.h"
#include "tests/runtime/devices/libraries/LibraryFixture.h"
#include "tests/runtime/devices/libraries/Works.h"

#include <cmath>

using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using namespace tcc::tests;
using tcc::format::StepKind;

namespace {

/// What differs from one product to the next.
struct Variant {
  bool lhsByColumns, rhsByColumns, resultByColumns;
  bool hasAddend, hasBias;
  std::optional<StepKind> function;
  int64_t batch;
  bool sharesRhs;  ///< all of the batch multiply one rhs
  int64_t padding; ///< elements between rows
};

struct Extents {
  int64_t m, n, k;
};

/// A matrix with its elements, small multiples of 1/8.
struct TestMatrix {
  StridedView view;
  std::vector<double> elements;

  TestMatrix(const StridedView &view, uint64_t seed)
      : view(view),
        elements(makeElements(view.strides[0] * view.extents[0], seed)) {}
  double at(int64_t b, int64_t i, int64_t j) const {
    return elements[indexOf(b, i, j)];
  }
  int64_t indexOf(int64_t b, int64_t i, int64_t j) const {
    return b * view.strides[0] + i * view.strides[1] + j * view.strides[2];
  }
};

double apply(std::optional<StepKind> function, double x) {
  if (!function)
    return x;
  if (function == StepKind::relu)
    return std::max(x, 0.0);
  return 0.5 * x *
         (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}

/// A library whose descriptions are its own (false) or those of the real
/// cuBLASLt (true).
class BlasLibraryTest : public LibraryFixture,
                        public testing::WithParamInterface<bool> {
protected:
  void SetUp() override {
    LibraryFixture::SetUp();
    LibraryChoice choice{nullptr, /*hasProducts=*/true,
                         /*hasConvolutions=*/false, /*isSimulated=*/true};
    if (GetParam()) {
      Result<const CublasLt *> real = findCublasLt(nullptr);
      if (!real.ok())
        GTEST_SKIP() << "not available: " << real.takeStatus().message();
      choice.simulatedBlas =
          reinterpret_cast<const CublasLt *(*)(const CublasLt *)>(findSymbol(
              TCC_EMULATED_PLUGIN, "tcc_emulated_cublaslt_with"))(*real);
    } else {
      choice.simulatedBlas = reinterpret_cast<const CublasLt *(*)()>(
          findSymbol(TCC_EMULATED_PLUGIN, "tcc_emulated_cublaslt"))();
    }
    open(choice);
  }

  void *place(const TestMatrix &matrix) {
    return upload(encode(matrix.elements, matrix.view.dtype));
  }
  /// Null if the library has no way.
  std::unique_ptr<LibraryPlan> plan(const LibraryWork &product) {
    auto plan = library->plan(product, nullptr, 0);
    EXPECT_TRUE(plan.ok()) << plan.takeStatus().message();
    return plan.ok() ? std::move(*plan) : nullptr;
  }
  void check(Extents extents, Variant variant, DType in, DType out);
};

void BlasLibraryTest::check(Extents e, Variant v, DType in, DType out) {
  TestMatrix lhs(makeMatrix(in, v.batch, e.m, e.k, v.lhsByColumns, v.padding),
                 1);
  TestMatrix rhs(makeMatrix(in, v.batch, e.k, e.n, v.rhsByColumns, v.padding),
                 2);
  TestMatrix result(
      makeMatrix(out, v.batch, e.m, e.n, v.resultByColumns, v.padding), 3);
  TestMatrix addend(result.view, 4), bias(makeMatrix(out, 1, 1, e.n), 5);
  if (v.sharesRhs)
    rhs.view.strides[0] = 0;
  LibraryWork product{.lhs = lhs.view, .rhs = rhs.view, .result = result.view};
  LibraryOperands operands{place(lhs), place(rhs), place(result), {}};
  auto add = [&](const LibraryStep &step, void *operand = nullptr) {
    product.steps.push_back(step);
    operands.steps.push_back(operand);
  };
  add(makeStep(product, StepKind::scale, 0.5));
  if (v.hasAddend)
    add(makeStep(product, StepKind::add), place(addend));
  if (v.hasBias)
    add(makeStep(product, StepKind::bias), place(bias));
  if (v.function)
    add(makeStep(product, *v.function));
  ASSERT_TRUE(isWellFormed(product));
  auto computation = plan(product);
  ASSERT_NE(computation, nullptr);
  Status status = computation->enqueue(operands, stream);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<char> bytes =
      download(operands.result, result.elements.size() * bytesOf(out));
  double tolerance = out == DType::bf16 || out == DType::f16 ? 2e-2 : 1e-6;
  for (int64_t b = 0; b < v.batch; ++b)
    for (int64_t i = 0; i < e.m; ++i)
      for (int64_t j = 0; j < e.n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < e.k; ++k)
          sum += lhs.at(b, i, k) * rhs.at(b, k, j);
        sum = 0.5 * sum + (v.hasAddend ? addend.at(b, i, j) : 0) +
              (v.hasBias ? bias.at(0, 0, j) : 0);
        ASSERT_NEAR(decode(bytes, result.indexOf(b, i, j), out),
                    apply(v.function, sum), tolerance)
            << "at " << b << ", " << i << ", " << j;
      }
}

} // namespace

TEST_P(BlasLibraryTest, ComputesAllLayouts) {
  for (int bits = 0; bits < 64; ++bits)
    for (std::optional<StepKind> function :
         {std::optional<StepKind>(), std::optional(StepKind::relu),
          std::optional(StepKind::gelu_tanh)}) {
      bool resultByColumns = bits & 4, hasBias = bits & 8;
      if (resultByColumns && hasBias)
        continue; // of columns only where they are adjacent
      Variant variant{bool(bits & 1),    bool(bits & 2), resultByColumns,
                      bool(bits & 16),   hasBias,        function,
                      bits & 32 ? 3 : 1, bool(bits & 1), bits & 2 ? 3 : 0};
      SCOPED_TRACE(testing::Message() << "variant " << bits);
      check({5, 7, 6}, variant, DType::f32, DType::f32);
      if (HasFatalFailure())
        return;
    }
}

TEST_P(BlasLibraryTest, ComputesExtentsOfOne) {
  for (Extents extents :
       {Extents{1, 7, 6}, Extents{5, 1, 6}, Extents{5, 7, 1}, Extents{1, 1, 1}})
    for (bool byColumns : {false, true})
      check(extents,
            {byColumns, byColumns, byColumns, true, false, std::nullopt, 1,
             false, 0},
            DType::f32, DType::f32);
}

TEST_P(BlasLibraryTest, ComputesAllTypes) {
  Variant variant{false, true, false, true, true, std::nullopt, 2, false, 0};
  for (auto [in, out] :
       {std::pair(DType::f64, DType::f64), std::pair(DType::bf16, DType::bf16),
        std::pair(DType::bf16, DType::f32), std::pair(DType::f16, DType::f16),
        std::pair(DType::f16, DType::f32)})
    check({4, 8, 6}, variant, in, out);
}

/// What gelu is of is a second result, in rows of a multiple of eight elements
/// that are aligned for vectors; else the kernel has to do it.
TEST_P(BlasLibraryTest, StoresWhatGeluIsOf) {
  constexpr int64_t kRows = 5, kDepth = 6;
  constexpr DType kType = DType::bf16;
  for (auto [columns, alignment, isPlanned] :
       {std::tuple(8, 64u, true), std::tuple(7, 64u, false),
        std::tuple(8, 8u, false)}) {
    TestMatrix lhs(makeMatrix(kType, 1, kRows, kDepth), 1),
        rhs(makeMatrix(kType, 1, kDepth, columns), 2),
        result(makeMatrix(kType, 1, kRows, columns), 3),
        bias(makeMatrix(kType, 1, 1, columns), 4);
    LibraryWork product{
        .lhs = lhs.view, .rhs = rhs.view, .result = result.view};
    product.steps = makeSteps(
        product, {StepKind::bias, StepKind::store, StepKind::gelu_tanh});
    product.steps[1].operand.alignment = alignment;
    auto computation = plan(product);
    ASSERT_EQ(computation != nullptr, isPlanned);
    if (!isPlanned)
      continue;
    LibraryOperands operands{place(lhs),
                             place(rhs),
                             place(result),
                             {place(bias), place(result), nullptr}};
    ASSERT_TRUE(computation->enqueue(operands, stream).ok());
    size_t bytes = result.elements.size() * bytesOf(kType);
    std::vector<char> sums = download(operands.steps[1], bytes),
                      results = download(operands.result, bytes);
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = bias.at(0, 0, j);
        for (int64_t k = 0; k < kDepth; ++k)
          sum += lhs.at(0, i, k) * rhs.at(0, k, j);
        int64_t index = result.indexOf(0, i, j);
        EXPECT_NEAR(decode(sums, index, kType), sum, 2e-2);
        EXPECT_NEAR(decode(results, index, kType),
                    apply(StepKind::gelu_tanh, sum), 2e-2);
      }
  }
}

/// A product is multiplied with gelu's derivative at what gelu is of, a matrix
/// as above; nothing is added to it.
TEST_P(BlasLibraryTest, MultipliesWithTheDerivativeOfGelu) {
  constexpr int64_t kRows = 5, kDepth = 6, kColumns = 8, kPadding = 8;
  constexpr DType kType = DType::f16;
  TestMatrix lhs(makeMatrix(kType, 1, kRows, kDepth), 1),
      rhs(makeMatrix(kType, 1, kDepth, kColumns, /*byColumns=*/true), 2),
      result(makeMatrix(kType, 1, kRows, kColumns), 3),
      sum(makeMatrix(kType, 1, kRows, kColumns, false, kPadding), 4);
  LibraryWork product{.lhs = lhs.view, .rhs = rhs.view, .result = result.view};
  product.steps = {{StepKind::scale, 0.5},
                   {StepKind::gelu_tanh_gradient, 1, sum.view}};
  auto computation = plan(product);
  ASSERT_NE(computation, nullptr);
  LibraryOperands operands{
      place(lhs), place(rhs), place(result), {nullptr, place(sum)}};
  ASSERT_TRUE(computation->enqueue(operands, stream).ok());
  std::vector<char> results =
      download(operands.result, result.elements.size() * bytesOf(kType));
  auto gelu = [](double x) { return apply(StepKind::gelu_tanh, x); };
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double dy = 0, x = sum.at(0, i, j), step = 1e-5;
      for (int64_t k = 0; k < kDepth; ++k)
        dy += 0.5 * lhs.at(0, i, k) * rhs.at(0, k, j);
      double slope = (gelu(x + step) - gelu(x - step)) / (2 * step);
      EXPECT_NEAR(decode(results, i * kColumns + j, kType), dy * slope, 2e-3);
    }
  product.steps.insert(product.steps.begin() + 1,
                       makeStep(product, StepKind::bias));
  EXPECT_EQ(plan(product), nullptr);
}

/// Sums of an operand along the depth, its outermost axis, are a second result
/// where rows of the first are adjacent; a factor has no place beside them.
TEST_P(BlasLibraryTest, SumsAlongTheDepth) {
  constexpr int64_t kRows = 5, kColumns = 7, kDepth = 6;
  for (int bits = 0; bits < 32; ++bits) {
    bool sumsLhs = bits & 1, hasAddend = bits & 2;
    bool isOutermost = sumsLhs ? bits & 4 : !(bits & 8);
    bool isPlanned = isOutermost && !(bits & 16);
    TestMatrix lhs(makeMatrix(DType::bf16, 1, kRows, kDepth, bits & 4), 1),
        rhs(makeMatrix(DType::bf16, 1, kDepth, kColumns, bits & 8), 2),
        result(makeMatrix(DType::f32, 1, kRows, kColumns, bits & 16), 3);
    LibraryWork product{
        .lhs = lhs.view, .rhs = rhs.view, .result = result.view};
    LibraryOperands operands{place(lhs), place(rhs), place(result), {}};
    if (hasAddend) {
      product.steps = makeSteps(product, {StepKind::add});
      operands.steps = {operands.result};
    }
    product.steps.push_back(
        makeStep(product, sumsLhs ? StepKind::sum_lhs : StepKind::sum_rhs));
    int64_t count = sumsLhs ? kRows : kColumns;
    operands.steps.push_back(upload(std::vector<char>(count * 4)));
    auto computation = plan(product);
    ASSERT_EQ(computation != nullptr, isPlanned) << bits;
    if (!isPlanned)
      continue;
    ASSERT_TRUE(computation->enqueue(operands, stream).ok());
    std::vector<char> sums = download(operands.steps.back(), count * 4);
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        sum += sumsLhs ? lhs.at(0, i, k) : rhs.at(0, k, i);
      EXPECT_NEAR(decode(sums, i, DType::f32), sum, 1e-6) << bits;
    }
    product.steps.insert(product.steps.begin(),
                         makeStep(product, StepKind::scale, 0.5));
    EXPECT_EQ(plan(product), nullptr);
  }
}

/// What is behind the tenth bit of a mantissa is lost where that is allowed, of
/// operands alone.
TEST_P(BlasLibraryTest, RoundsToTf32) {
  StridedView one = makeMatrix(DType::f32, 1, 1, 1);
  constexpr double kValue = 1 + 0x1p-11 + 0x1p-12, kRounded = 1 + 0x1p-10;
  void *operand = upload(encode({kValue}, DType::f32));
  void *result = upload(encode({0}, DType::f32));
  for (bool tf32 : {false, true}) {
    auto computation = plan({.lhs = one,
                             .rhs = one,
                             .result = one,
                             .steps = {{StepKind::add, 1, one}},
                             .tf32 = tf32});
    ASSERT_NE(computation, nullptr);
    LibraryOperands operands{operand, operand, result, {operand}};
    ASSERT_TRUE(computation->enqueue(operands, stream).ok());
    double factor = tf32 ? kRounded : kValue;
    EXPECT_NEAR(decode(download(result, 4), 0, DType::f32),
                factor * factor + kValue, 1e-6);
  }
}

/// No matrix of the library's: the kernel has to do it.
TEST_P(BlasLibraryTest, LeavesOtherStrides) {
  StridedView plain = makeMatrix(DType::f32, 1, 4, 4);
  StridedView every = plain, overlapping = plain;
  every.strides = {0, 8, 2};
  overlapping.strides = {0, 2, 1};
  for (const StridedView &lhs : {every, overlapping})
    EXPECT_EQ(plan({.lhs = lhs, .rhs = plain, .result = plain}), nullptr);
}

TEST_P(BlasLibraryTest, HoldsToTheAlignmentItWasToldOf) {
  StridedView plain = makeMatrix(DType::f32, 1, 4, 4);
  auto computation = plan({.lhs = plain, .rhs = plain, .result = plain});
  ASSERT_NE(computation, nullptr);
  auto *place = static_cast<char *>(upload(std::vector<char>(4096)));
  LibraryOperands operands{place + 4, place, place + 1024, {}};
  ASSERT_TRUE(computation->enqueue(operands, stream).ok());
  EXPECT_NE(driver->streamSynchronize(stream), kSuccess);
}

INSTANTIATE_TEST_SUITE_P(, BlasLibraryTest, testing::Bool(),
                         [](const auto &test) {
                           return test.param ? "RealDescriptions"
                                             : "OwnDescriptions";
                         });
