// Products of all layouts through descriptions of cuBLASLt, which the simulated
// library reads back and computes from.

#include "runtime/devices/libraries/CublasLt.h"
#include "tests/runtime/devices/libraries/LibraryFixture.h"

#include <cmath>

using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using namespace tcc::tests;
using tcc::format::Activation;

namespace {

/// What differs from one product to the next.
struct Variant {
  bool lhsByColumns, rhsByColumns, resultByColumns;
  bool hasAddend, hasBias;
  Activation activation;
  int64_t batch;
  bool sharesRhs;  ///< all of the batch multiply one rhs
  int64_t padding; ///< elements between rows
};

struct Extents {
  int64_t m, n, k;
};

/// A matrix with room for padding, its elements small multiples of 1/8.
struct TestMatrix {
  StridedMatrix view;
  std::vector<double> elements;

  TestMatrix(int64_t rows, int64_t columns, bool byColumns, int64_t padding,
             int64_t batch, bool isShared, uint64_t seed) {
    int64_t leading = (byColumns ? rows : columns) + padding;
    int64_t bytes = leading * (byColumns ? columns : rows);
    view = {DType::f32, isShared ? 0 : bytes, byColumns ? 1 : leading,
            byColumns ? leading : 1, 64};
    elements = makeElements(bytes * batch, seed);
  }
  double at(int64_t b, int64_t i, int64_t j) const {
    return elements[b * view.batch + i * view.row + j * view.column];
  }
};

double activate(double x, Activation activation) {
  if (activation == Activation::relu)
    return std::max(x, 0.0);
  if (activation == Activation::none)
    return x;
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

  void check(Extents extents, Variant variant, DType in, DType out);
};

void BlasLibraryTest::check(Extents e, Variant v, DType in, DType out) {
  TestMatrix lhs(e.m, e.k, v.lhsByColumns, v.padding, v.batch, false, 1);
  TestMatrix rhs(e.k, e.n, v.rhsByColumns, v.padding, v.batch, v.sharesRhs, 2);
  TestMatrix result(e.m, e.n, v.resultByColumns, v.padding, v.batch, false, 3);
  TestMatrix addend(e.m, e.n, v.resultByColumns, v.padding, v.batch, false, 4);
  TestMatrix bias(1, e.n, false, 0, 1, true, 5);
  for (TestMatrix *matrix : {&lhs, &rhs})
    matrix->view.dtype = in;
  for (TestMatrix *matrix : {&result, &addend, &bias})
    matrix->view.dtype = out;
  MatrixProduct product{v.batch,   e.m,      e.n,         e.k,
                        lhs.view,  rhs.view, result.view, std::nullopt,
                        v.hasBias, 0.5,      v.activation};
  if (v.hasAddend)
    product.addend = addend.view;
  auto plan = library->plan(product, nullptr, 0);
  ASSERT_TRUE(plan.ok()) << plan.takeStatus().message();
  ASSERT_NE(*plan, nullptr);
  auto place = [&](const TestMatrix &matrix) {
    return upload(encode(matrix.elements, matrix.view.dtype));
  };
  LibraryOperands operands{place(lhs), place(rhs), nullptr, nullptr,
                           place(result)};
  if (v.hasAddend)
    operands.addend = place(addend);
  if (v.hasBias)
    operands.bias = place(bias);
  Status status = (*plan)->enqueue(operands, stream);
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
        int64_t index = b * result.view.batch + i * result.view.row +
                        j * result.view.column;
        ASSERT_NEAR(decode(bytes, index, out), activate(sum, v.activation),
                    tolerance)
            << "at " << b << ", " << i << ", " << j;
      }
}

} // namespace

TEST_P(BlasLibraryTest, ComputesAllLayouts) {
  for (int bits = 0; bits < 64; ++bits)
    for (Activation activation :
         {Activation::none, Activation::relu, Activation::gelu_tanh}) {
      bool resultByColumns = bits & 4, hasBias = bits & 8;
      if (resultByColumns && hasBias)
        continue; // of columns only where they are adjacent
      Variant variant{bool(bits & 1),    bool(bits & 2), resultByColumns,
                      bool(bits & 16),   hasBias,        activation,
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
            {byColumns, byColumns, byColumns, true, false, Activation::none, 1,
             false, 0},
            DType::f32, DType::f32);
}

TEST_P(BlasLibraryTest, ComputesAllTypes) {
  Variant variant{false, true,  false, true, true, Activation::none,
                  2,     false, 0};
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
    auto make = [&](int64_t rows, int64_t width, uint64_t seed) {
      TestMatrix matrix(rows, width, false, 0, 1, false, seed);
      matrix.view.dtype = kType;
      return matrix;
    };
    TestMatrix lhs = make(kRows, kDepth, 1), rhs = make(kDepth, columns, 2),
               result = make(kRows, columns, 3), bias = make(1, columns, 4);
    StridedMatrix second = result.view;
    second.alignment = alignment;
    auto plan = library->plan({1, kRows, columns, kDepth, lhs.view, rhs.view,
                               result.view, std::nullopt, true, 1,
                               Activation::gelu_tanh, false, second},
                              nullptr, 0);
    ASSERT_TRUE(plan.ok()) << plan.takeStatus().message();
    ASSERT_EQ(*plan != nullptr, isPlanned);
    if (!isPlanned)
      continue;
    auto place = [&](const TestMatrix &matrix) {
      return upload(encode(matrix.elements, kType));
    };
    LibraryOperands operands{place(lhs),  place(rhs),    nullptr,
                             place(bias), place(result), place(result)};
    ASSERT_TRUE((*plan)->enqueue(operands, stream).ok());
    size_t bytes = result.elements.size() * bytesOf(kType);
    std::vector<char> sums = download(operands.sum, bytes),
                      results = download(operands.result, bytes);
    for (int64_t i = 0; i < kRows; ++i)
      for (int64_t j = 0; j < columns; ++j) {
        double sum = bias.at(0, 0, j);
        for (int64_t k = 0; k < kDepth; ++k)
          sum += lhs.at(0, i, k) * rhs.at(0, k, j);
        int64_t index = i * columns + j;
        double expected = activate(sum, Activation::gelu_tanh);
        EXPECT_NEAR(decode(sums, index, kType), sum, 2e-2);
        EXPECT_NEAR(decode(results, index, kType), expected, 2e-2);
      }
  }
}

/// A product is multiplied with gelu's derivative at what gelu is of, a matrix
/// as above; nothing is added to it.
TEST_P(BlasLibraryTest, MultipliesWithTheDerivativeOfGelu) {
  constexpr int64_t kRows = 5, kDepth = 6, kColumns = 8, kPadding = 8;
  constexpr DType kType = DType::f16;
  auto make = [&](int64_t rows, int64_t columns, bool byColumns,
                  int64_t padding, uint64_t seed) {
    TestMatrix matrix(rows, columns, byColumns, padding, 1, false, seed);
    matrix.view.dtype = kType;
    return matrix;
  };
  TestMatrix lhs = make(kRows, kDepth, false, 0, 1),
             rhs = make(kDepth, kColumns, true, 0, 2),
             result = make(kRows, kColumns, false, 0, 3),
             sum = make(kRows, kColumns, false, kPadding, 4);
  MatrixProduct product{1,
                        kRows,
                        kColumns,
                        kDepth,
                        lhs.view,
                        rhs.view,
                        result.view,
                        std::nullopt,
                        false,
                        0.5,
                        Activation::gelu_tanh_gradient,
                        false,
                        sum.view};
  auto plan = library->plan(product, nullptr, 0);
  ASSERT_TRUE(plan.ok()) << plan.takeStatus().message();
  ASSERT_NE(*plan, nullptr);
  auto place = [&](const TestMatrix &matrix) {
    return upload(encode(matrix.elements, kType));
  };
  LibraryOperands operands{place(lhs), place(rhs),    nullptr,
                           nullptr,    place(result), place(sum)};
  ASSERT_TRUE((*plan)->enqueue(operands, stream).ok());
  std::vector<char> results =
      download(operands.result, result.elements.size() * bytesOf(kType));
  auto gelu = [](double x) { return activate(x, Activation::gelu_tanh); };
  for (int64_t i = 0; i < kRows; ++i)
    for (int64_t j = 0; j < kColumns; ++j) {
      double dy = 0, x = sum.at(0, i, j), step = 1e-5;
      for (int64_t k = 0; k < kDepth; ++k)
        dy += 0.5 * lhs.at(0, i, k) * rhs.at(0, k, j);
      double slope = (gelu(x + step) - gelu(x - step)) / (2 * step);
      EXPECT_NEAR(decode(results, i * kColumns + j, kType), dy * slope, 2e-3);
    }
  product.hasBias = true;
  plan = library->plan(product, nullptr, 0);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(*plan, nullptr);
}

/// Sums of an operand along the depth, its outermost axis, are a second result;
/// a factor has no place beside them.
TEST_P(BlasLibraryTest, SumsAlongTheDepth) {
  constexpr int64_t kRows = 5, kColumns = 7, kDepth = 6;
  for (int bits = 0; bits < 32; ++bits) {
    bool sumsLhs = bits & 1, hasAddend = bits & 2;
    bool isOutermost = sumsLhs ? bits & 4 : !(bits & 8);
    TestMatrix lhs(kRows, kDepth, bits & 4, 0, 1, false, 1),
        rhs(kDepth, kColumns, bits & 8, 0, 1, false, 2),
        result(kRows, kColumns, bits & 16, 0, 1, false, 3);
    lhs.view.dtype = rhs.view.dtype = DType::bf16;
    MatrixProduct product{1,        kRows,    kColumns,        kDepth,
                          lhs.view, rhs.view, result.view,     std::nullopt,
                          false,    1,        Activation::none};
    product.depthSums = result.view;
    product.sumsLhs = sumsLhs;
    if (hasAddend)
      product.addend = result.view;
    auto plan = library->plan(product, nullptr, 0);
    ASSERT_TRUE(plan.ok()) << plan.takeStatus().message();
    ASSERT_EQ(*plan != nullptr, isOutermost) << bits;
    if (!isOutermost)
      continue;
    LibraryOperands operands{upload(encode(lhs.elements, DType::bf16)),
                             upload(encode(rhs.elements, DType::bf16)), nullptr,
                             nullptr,
                             upload(encode(result.elements, DType::f32))};
    operands.addend = hasAddend ? operands.result : nullptr;
    int64_t count = sumsLhs ? kRows : kColumns;
    operands.depthSums = upload(std::vector<char>(count * 4));
    ASSERT_TRUE((*plan)->enqueue(operands, stream).ok());
    std::vector<char> sums = download(operands.depthSums, count * 4);
    for (int64_t i = 0; i < count; ++i) {
      double sum = 0;
      for (int64_t k = 0; k < kDepth; ++k)
        sum += sumsLhs ? lhs.at(0, i, k) : rhs.at(0, k, i);
      EXPECT_NEAR(decode(sums, i, DType::f32), sum, 1e-6) << bits;
    }
    product.scale = 0.5;
    plan = library->plan(product, nullptr, 0);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(*plan, nullptr);
  }
}

/// What is behind the tenth bit of a mantissa is lost where that is allowed, of
/// operands alone.
TEST_P(BlasLibraryTest, RoundsToTf32) {
  StridedMatrix one{DType::f32, 0, 1, 1, 64};
  constexpr double kValue = 1 + 0x1p-11 + 0x1p-12, kRounded = 1 + 0x1p-10;
  void *operand = upload(encode({kValue}, DType::f32));
  void *result = upload(encode({0}, DType::f32));
  for (bool tf32 : {false, true}) {
    auto plan = library->plan(
        {1, 1, 1, 1, one, one, one, one, false, 1, Activation::none, tf32},
        nullptr, 0);
    ASSERT_TRUE(plan.ok());
    ASSERT_NE(*plan, nullptr);
    LibraryOperands operands{operand, operand, operand, nullptr, result};
    ASSERT_TRUE((*plan)->enqueue(operands, stream).ok());
    double factor = tf32 ? kRounded : kValue;
    EXPECT_NEAR(decode(download(result, 4), 0, DType::f32),
                factor * factor + kValue, 1e-6);
  }
}

/// No matrix of the library's: the kernel has to do it.
TEST_P(BlasLibraryTest, LeavesOtherStrides) {
  StridedMatrix plain{DType::f32, 0, 4, 1, 64}, every{DType::f32, 0, 8, 2, 64};
  StridedMatrix overlapping{DType::f32, 0, 2, 1, 64};
  for (const StridedMatrix &lhs : {every, overlapping}) {
    auto plan = library->plan({1, 4, 4, 4, lhs, plain, plain, std::nullopt,
                               false, 1, Activation::none},
                              nullptr, 0);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(*plan, nullptr);
  }
}

TEST_P(BlasLibraryTest, HoldsToTheAlignmentItWasToldOf) {
  StridedMatrix plain{DType::f32, 0, 4, 1, 64};
  auto plan = library->plan({1, 4, 4, 4, plain, plain, plain, std::nullopt,
                             false, 1, Activation::none},
                            nullptr, 0);
  ASSERT_TRUE(plan.ok());
  auto *place = static_cast<char *>(upload(std::vector<char>(4096)));
  LibraryOperands operands{place + 4, place, nullptr, nullptr, place + 1024};
  ASSERT_TRUE((*plan)->enqueue(operands, stream).ok());
  EXPECT_NE(driver->streamSynchronize(stream), kSuccess);
}

INSTANTIATE_TEST_SUITE_P(, BlasLibraryTest, testing::Bool(),
                         [](const auto &test) {
                           return test.param ? "RealDescriptions"
                                             : "OwnDescriptions";
                         });
