#include "tests/compiler/codegen/cpu/kernels/KernelHarness.h"

using namespace tcc;
using graph::KernelKind;

namespace {

class AttentionKernelTest : public KernelHarness {
protected:
  /// Attention of operands and a result of these shapes.
  void checkAttention(const std::string &q, const std::string &k,
                      const std::string &v, const std::string &y,
                      const std::string &attributes = "",
                      double tolerance = 2e-6) {
    check(KernelKind::attention,
          "!q = tensor<" + q + ">\n!k = tensor<" + k + ">\n!v = tensor<" + v +
              ">\n!y = tensor<" + y + ">\n" + R"(
      func.func @f(%q: !q, %k: !k, %v: !v) -> !y {
        %0 = graph.attention %q, %k, %v {scale = 0.25 : f64)" +
              attributes + R"(} : (!q, !k, !v) -> !y
        return %0 : !y
      })",
          {}, tolerance);
  }
};

} // namespace

TEST_F(AttentionKernelTest, sizesAroundTilesAndBlocks) {
  checkAttention("1x1xf32", "1x1xf32", "1x1xf32", "1x1xf32");
  checkAttention("2x7x16xf32", "2x9x16xf32", "2x9x16xf32", "2x7x16xf32");
  checkAttention("2x50x40xf32", "2x65x40xf32", "2x65x72xf32", "2x50x72xf32");
  checkAttention("300x8xf32", "33x8xf32", "33x5xf32", "300x5xf32");
  checkAttention("5x8xf32", "900x8xf32", "900x16xf32", "5x16xf32");
}

TEST_F(AttentionKernelTest, eachElementType) {
  checkAttention("2x7x16xf64", "2x9x16xf64", "2x9x16xf64", "2x7x16xf64", "",
                 1e-14);
  // The reference rounds scores and weights to the element type.
  checkAttention("2x7x16xf16", "2x9x16xf16", "2x9x16xf16", "2x7x16xf16", "",
                 4e-3);
  checkAttention("2x7x16xbf16", "2x9x16xbf16", "2x9x16xbf16", "2x7x16xbf16", "",
                 3e-2);
}

/// Even and odd depths, keys that fill units and tile registers or do not.
TEST_F(AttentionKernelTest, matricesInUnits) {
  checkAttention("3x50x64xbf16", "3x65x64xbf16", "3x65x72xbf16", "3x50x72xbf16",
                 "", 3e-2);
  checkAttention("14x80xbf16", "197x80xbf16", "197x16xbf16", "14x16xbf16", "",
                 3e-2);
  checkAttention("99x33xbf16", "34x33xbf16", "34x33xbf16", "99x33xbf16", "",
                 3e-2);
}

/// Tasks of one call take no more of the stack than one of them.
TEST_F(AttentionKernelTest, manyTasksOfACall) {
  checkAttention("600x20x34xbf16", "600x20x34xbf16", "600x20x16xbf16",
                 "600x20x16xbf16", "", 3e-2);
}

TEST_F(AttentionKernelTest, rowsWithoutWeightsAreZerosIfGuarded) {
  checkAttention("2x7x16xf32", "2x9x16xf32", "2x9x16xf32", "2x7x16xf32",
                 ", guard");
  checkAttention("2x7x64xbf16", "2x39x64xbf16", "2x39x16xbf16", "2x7x16xbf16",
                 ", guard", 3e-2);
}

TEST_F(AttentionKernelTest, headsBetweenRows) {
  check(KernelKind::attention, R"(
    !x = tensor<2x9x3x16xf32>
    !y = tensor<2x3x9x16xf32>
    func.func @f(%q: !x, %k: !x, %v: !x, %m: tensor<2x1x1x9xf32>) -> !y {
      %0 = graph.transpose %q [0, 2, 1, 3] : (!x) -> !y
      %1 = graph.transpose %k [0, 2, 1, 3] : (!x) -> !y
      %2 = graph.transpose %v [0, 2, 1, 3] : (!x) -> !y
      %3 = graph.broadcast %m : (tensor<2x1x1x9xf32>) -> tensor<2x3x9x9xf32>
      %4 = graph.attention %0, %1, %2 mask %3 {scale = 0.25 : f64}
        : (!y, !y, !y, tensor<2x3x9x9xf32>) -> !y
      %5 = graph.neg %4 : (!y) -> !y
      return %5 : !y
    })");
}

TEST_F(AttentionKernelTest, operandsThatAreComputedOrSliced) {
  check(KernelKind::attention, R"(
    !x = tensor<2x9x16xf32>
    !p = tensor<2x9x48xf32>
    func.func @f(%p: !p, %m: tensor<1x9x9xf32>) -> !x {
      %q = graph.slice %p {starts = affine_map<() -> (0, 0, 0)>,
        steps = array<i64: 1, 1, 1>} : (!p) -> !x
      %k = graph.slice %p {starts = affine_map<() -> (0, 0, 16)>,
        steps = array<i64: 1, 1, 1>} : (!p) -> !x
      %w = graph.slice %p {starts = affine_map<() -> (0, 0, 32)>,
        steps = array<i64: 1, 1, 1>} : (!p) -> !x
      %v = graph.neg %w : (!x) -> !x
      %0 = graph.attention %q, %k, %v mask %m {scale = 1.0 : f64}
        : (!x, !x, !x, tensor<1x9x9xf32>) -> !x
      return %0 : !x
    })");
}

TEST_F(AttentionKernelTest, dynamicQueriesAndKeys) {
  for (int64_t n : {0, 1, 70})
    check(KernelKind::attention, R"(
      !q = tensor<2x?x16xf32, affine_map<()[s0] -> (2, s0, 16)>>
      !k = tensor<2x?x16xf32, affine_map<()[s0] -> (2, s0 + 3, 16)>>
      module attributes {graph.symbols = [#graph.symbol<"n", 0 to 80 by 1>]} {
        func.func @f(%q: !q, %k: !k, %v: !k) -> !q {
          %0 = graph.attention %q, %k, %v {scale = 0.25 : f64}
            : (!q, !k, !k) -> !q
          return %0 : !q
        }
      })",
          {n});
}
