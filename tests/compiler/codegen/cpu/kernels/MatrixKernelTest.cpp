//===- MatrixKernelTest.cpp - Regions with matrix products ----------------===//

#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "tests/compiler/codegen/cpu/kernels/KernelHarness.h"

#include "mlir/Support/DebugStringHelper.h"

#include <cmath>

using namespace tcc;
using graph::KernelKind;

namespace {

class MatrixKernelTest : public KernelHarness {
protected:
  /// Checks the product of types `a` and `b`, with a function of each element
  /// behind it.
  void checkProduct(const std::string &a, const std::string &b,
                    const std::string &c, const std::string &attributes = "",
                    double tolerance = 2e-6) {
    check(KernelKind::contraction,
          "!a = tensor<" + a + ">\n!b = tensor<" + b + ">\n!c = tensor<" + c +
              ">\n"
              R"(
      func.func @f(%a: !a, %b: !b) -> !c {
        %0 = graph.matmul %a, %b )" +
              attributes + R"( : (!a, !b) -> !c
        %1 = graph.neg %0 : (!c) -> !c
        return %1 : !c
      })",
          {}, tolerance);
  }
};

TEST_F(MatrixKernelTest, productsOfOddSizes) {
  checkProduct("1x5xf32", "5x1xf32", "1x1xf32");
  checkProduct("7x33xf32", "33x19xf32", "7x19xf32");
  checkProduct("131x201xf32", "201x67xf32", "131x67xf32");
  checkProduct("3x500xf32", "500x64xf32", "3x64xf32");
}

TEST_F(MatrixKernelTest, eachSumIsOneChainOfFusedMultiplyAdds) {
  parse(KernelKind::contraction, R"(
    func.func @f(%a: tensor<3x401xf32>, %b: tensor<401x5xf32>) -> tensor<3x5xf32> {
      %0 = graph.matmul %a, %b
        : (tensor<3x401xf32>, tensor<401x5xf32>) -> tensor<3x5xf32>
      return %0 : tensor<3x5xf32>
    })");
  compile();
  std::vector<HostTensor> inputs = makeInputs();
  KernelRun result = run(inputs);
  const auto *values =
      reinterpret_cast<const float *>(result.results[0].data());
  for (int64_t i = 0; i < 3; ++i)
    for (int64_t j = 0; j < 5; ++j) {
      float sum = 0;
      for (int64_t k = 0; k < 401; ++k)
        sum = std::fma(float(inputs[0].elements[i * 401 + k].f),
                       float(inputs[1].elements[k * 5 + j].f), sum);
      EXPECT_EQ(values[i * 5 + j], sum) << i << ", " << j;
    }
}

TEST_F(MatrixKernelTest, batchesAndTransposedOperands) {
  checkProduct("3x9x17xf32", "3x17x11xf32", "3x9x11xf32");
  checkProduct("3x9x17xf32", "17x11xf32", "3x9x11xf32");
  checkProduct("17x9xf32", "17x11xf32", "9x11xf32", "{transpose_lhs}");
  checkProduct("7x25xf64", "7x11xf64", "25x11xf64", "{transpose_lhs}", 1e-14);
  checkProduct("9x17xf32", "11x17xf32", "9x11xf32", "{transpose_rhs}");
}

/// Panels of 6 and 12 rows, that are packed with vectors of 8 and 16; whole
/// groups of k and those with a rest.
TEST_F(MatrixKernelTest, packedTransposedRows) {
  checkProduct("8x7xf32", "8x70xf32", "7x70xf32", "{transpose_lhs}");
  checkProduct("33x131xf32", "33x70xf32", "131x70xf32", "{transpose_lhs}");
  checkProduct("41x30xf32", "41x20xf32", "30x20xf32", "{transpose_lhs}");
  checkProduct("3x24x13xf32", "3x24x65xf32", "3x13x65xf32", "{transpose_lhs}");
  checkProduct("1700x25xf64", "1700x65xf64", "25x65xf64", "{transpose_lhs}",
               1e-13);
}

/// Strides of operands that are not as their rows lie in memory.
TEST_F(MatrixKernelTest, productsOfViews) {
  auto checkView = [&](const std::string &x, const std::string &view,
                       const std::string &a, const std::string &b,
                       const std::string &c) {
    check(KernelKind::contraction, "!x = tensor<" + x + ">\n!a = tensor<" + a +
                                       ">\n!b = tensor<" + b +
                                       ">\n!c = tensor<" + c + ">\n" + R"(
      func.func @f(%x: !x, %b: !b) -> !c {
        %a = )" + view + R"( : (!x) -> !a
        %0 = graph.matmul %a, %b : (!a, !b) -> !c
        return %0 : !c
      })");
  };
  std::string broadcast = "graph.broadcast %x";
  checkView("1x8x16xf32", broadcast, "3x1x8x16xf32", "16x40xf32",
            "3x1x8x40xf32");
  checkView("3x1x16xf32", broadcast, "5x3x1x16xf32", "16x40xf32",
            "5x3x1x40xf32");
  checkView("3x4x1x16xf32", "graph.transpose %x [1, 0, 2, 3]", "4x3x1x16xf32",
            "16x40xf32", "4x3x1x40xf32");
  for (std::string type : {"f16", "bf16", "f32"})
    checkView("16x24x3x" + type, "graph.transpose %x [2, 0, 1]",
              "3x16x24x" + type, "3x24x16x" + type, "3x16x16x" + type);
}

/// Slices that each matrix of a batch chooses are read where they lie.
TEST_F(MatrixKernelTest, productsOfGatheredSlices) {
  auto define = [](const std::string &w, const std::string &g,
                   const std::string &x, const std::string &y, int axis,
                   const std::string &product) {
    return "!w = tensor<" + w + ">\n!i = tensor<7xi64>\n!g = tensor<" + g +
           ">\n!x = tensor<" + x + ">\n!y = tensor<" + y + ">\n" + R"(
      func.func @f(%w: !w, %i: !i, %x: !x) -> !y {
        %g = graph.gather %w, %i {axis = )" +
           std::to_string(axis) + R"(} : (!w, !i) -> !g
        %0 = graph.matmul )" +
           product + R"( -> !y
        return %0 : !y
      })";
  };
  auto checkSlices = [&](auto &&...parts) {
    check(KernelKind::contraction, define(parts...));
  };
  std::string left = "%g, %x : (!g, !x)", right = "%x, %g : (!x, !g)";
  for (std::string type : {"f32", "bf16"}) {
    std::string vector = "7x24x1x" + type, matrix = "7x24x70x" + type;
    checkSlices("4x16x24x" + type, "7x16x24x" + type, vector, "7x16x1xf32", 0,
                left);
    checkSlices("4x16x24x" + type, "7x16x24x" + type, matrix, "7x16x70xf32", 0,
                left);
    checkSlices("4x24x70x" + type, "7x24x70x" + type, "7x16x24x" + type,
                "7x16x70xf32", 0, right);
    checkSlices("4x70x24x" + type, "7x70x24x" + type, "7x3x24x" + type,
                "7x3x70xf32", 0, "%x, %g {transpose_rhs} : (!x, !g)");
  }
  // Rows that are not those of the batch: computed one by one.
  checkSlices("4x24xf32", "7x24xf32", "24x9xf32", "7x9xf32", 0, left);
  checkSlices("2x4x24xf32", "2x7x24xf32", "2x24x9xf32", "2x7x9xf32", 1, left);

  parse(KernelKind::contraction, define("4x16x24xf32", "7x16x24xf32",
                                        "7x24x9xf32", "7x16x9xf32", 0, left));
  compile();
  ASSERT_TRUE(getKernel().getInfo().usesFault);
  std::vector<HostTensor> inputs = makeInputs();
  inputs[1].elements[3].i = -4;
  EXPECT_EQ(run(inputs).fault[0], 0) << "negative ones count from the end";
  inputs[1].elements[3].i = 4;
  EXPECT_EQ(run(inputs).fault[0], 1);
  EXPECT_EQ(run(inputs).fault[1], 4);
}

TEST_F(MatrixKernelTest, productsOfPackedWeights) {
  checkProduct("9x17xf32", "2x17x64xf32", "9x128xf32", "{packed_rhs}");
  checkProduct("1x300xf32", "1x300x48xf32", "1x40xf32", "{packed_rhs}");
}

/// An even depth: neighbours in k are multiplied as pairs.
TEST_F(MatrixKernelTest, productsOfPairs) {
  checkProduct("7x34xbf16", "34x19xbf16", "7x19xbf16");
  checkProduct("7x34xbf16", "19x34xbf16", "7x19xf32", "{transpose_rhs}");
  checkProduct("400x25xbf16", "400x70xbf16", "25x70xf32", "{transpose_lhs}");
  checkProduct("3x3x18xbf16", "3x18x64xbf16", "3x3x64xf32");
  checkProduct("1x500xbf16", "2x500x64xbf16", "1x128xf32", "{packed_rhs}");
  checkProduct("13x6xbf16", "1x6x48xbf16", "13x40xbf16", "{packed_rhs}");
  checkProduct("30x500xbf16", "1x500x32xbf16", "30x20xf32", "{packed_rhs}");
  checkProduct("18x5xbf16", "1x18x48xbf16", "5x40xf32",
               "{transpose_lhs, packed_rhs}");
  // Rows and depths that fill tile registers, or do not: in place, ...
  for (int64_t rows : {1, 16, 23, 33, 64, 107}) {
    std::string m = std::to_string(rows);
    checkProduct(m + "x32xbf16", "32x80xbf16", m + "x80xf32");
    checkProduct(m + "x90xbf16", "2x90x64xbf16", m + "x128xbf16",
                 "{packed_rhs}");
    // ... transposed while they are packed, and in several blocks of k.
    checkProduct("74x" + m + "xbf16", "74x20xbf16", m + "x20xf32",
                 "{transpose_lhs}");
    if (rows % 2 == 1)
      checkProduct(m + "x1602xbf16", "1602x24xbf16", m + "x24xf32");
  }
  // Odd ones are not.
  checkProduct("9x17xbf16", "2x17x64xbf16", "9x128xf32", "{packed_rhs}");
}

/// What is computed while it is packed is paired there.
TEST_F(MatrixKernelTest, computedOperandsInPairs) {
  check(KernelKind::contraction, R"(
    !a = tensor<9x34xf32>
    !n = tensor<9x34xbf16>
    !b = tensor<2x34x64xbf16>
    !c = tensor<9x128xf32>
    func.func @f(%a: !a, %b: !b) -> !c {
      %r = graph.relu %a : (!a) -> !a
      %n = graph.cast %r : (!a) -> !n
      %0 = graph.matmul %n, %b {packed_rhs} : (!n, !b) -> !c
      return %0 : !c
    })");
}

TEST_F(MatrixKernelTest, productsOfEachElementType) {
  checkProduct("7x33xf64", "33x19xf64", "7x19xf64", "", 1e-14);
  checkProduct("7x33xf16", "33x19xf16", "7x19xf16");
  checkProduct("7x33xbf16", "33x19xbf16", "7x19xbf16");
  checkProduct("7x33xi8", "33x19xui8", "7x19xi32");
}

TEST_F(MatrixKernelTest, dynamicRowsOfAProduct) {
  auto checkRows = [&](const std::string &depth, const std::string &type,
                       int64_t n) {
    check(KernelKind::contraction,
          "!a = tensor<?x" + depth + "x" + type +
              ", affine_map<()[s0] -> (s0, " + depth + ")>>\n!b = tensor<" +
              depth + "x19x" + type + R"(>
      !c = tensor<?x19xf32, affine_map<()[s0] -> (s0, 19)>>
      module attributes {graph.symbols = [#graph.symbol<"n", 1 to 40 by 1>]} {
        func.func @f(%a: !a, %b: !b) -> !c {
          %0 = graph.matmul %a, %b : (!a, !b) -> !c
          return %0 : !c
        }
      })",
          {n});
  };
  for (int64_t n : {1, 8, 37})
    checkRows("33", "f32", n);
  for (int64_t n : {1, 16, 37})
    checkRows("54", "bf16", n);
}

/// By whatever plan that the target offers, an element is one chain of
/// additions.
TEST_F(MatrixKernelTest, anyBlocksHaveTheSameBits) {
  auto checkPlans = [&](const std::string &operands, const std::string &op) {
    parse(KernelKind::contraction,
          operands + "\nfunc.func @f(%a: !a, %b: !b) -> !c {\n%0 = " + op +
              " : (!a, !b) -> !c\n%1 = graph.relu %0 : (!c) -> !c\n"
              "return %1 : !c\n}");
    std::vector<HostTensor> inputs = makeInputs();
    compile();
    std::vector<Bytes> expected = run(inputs).results;
    constexpr size_t kPlans = 5;
    auto plans = cpu::analyzeKernel(getRegion())->alternatives;
    ASSERT_GE(plans.size(), kPlans) << op;
    for (auto plan : llvm::ArrayRef(plans).take_front(kPlans)) {
      getRegion()->setAttr(kPlanAttr, plan);
      compile();
      EXPECT_EQ(run(inputs, /*tasksPerCall=*/1).results, expected)
          << op << ": " << mlir::debugString(plan);
      EXPECT_EQ(run(inputs).results, expected);
    }
  };
  checkPlans("!a = tensor<131x1301xf32>\n!b = tensor<1301x201xf32>\n"
             "!c = tensor<131x201xf32>",
             "graph.matmul %a, %b");
  checkPlans("!a = tensor<2x65x600xbf16>\n!b = tensor<2x600x129xbf16>\n"
             "!c = tensor<2x65x129xf32>",
             "graph.matmul %a, %b");
  std::string window =
      "window = array<i64: 3, 3>, strides = array<i64: 1, 1>, "
      "pad_low = array<i64: 1, 1>, pad_high = array<i64: 1, 1>, "
      "dilations = array<i64: 1, 1>";
  checkPlans("!a = tensor<2x9x9x70xf32>\n!b = tensor<130x3x3x70xf32>\n"
             "!c = tensor<2x9x9x130xf32>",
             "graph.conv %a, %b {channels_last, filters = 130 : i64, "
             "groups = 1 : i64, " +
                 window + "}");
  checkPlans("!a = tensor<2x29x30x32xbf16>\n!b = tensor<1x3x288x64xbf16>\n"
             "!c = tensor<2x29x30x130xf32>",
             "graph.conv %a, %b {packed_filter, channels_last, "
             "filters = 130 : i64, groups = 1 : i64, " +
                 window + "}");
  checkPlans("!a = tensor<2x20x20x24xf32>\n!b = tensor<2x20x20x70xf32>\n"
             "!c = tensor<70x3x3x24xf32>",
             "graph.conv_filter_gradient %a, %b {groups = 1 : i64, " + window +
                 "}");
}

} // namespace
