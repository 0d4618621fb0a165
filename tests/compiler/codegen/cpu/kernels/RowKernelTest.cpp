#include "tests/compiler/codegen/cpu/kernels/KernelHarness.h"

using namespace tcc;

namespace {

class RowKernelTest : public KernelHarness {
protected:
  /// Checks `%y = body` for %x of type !x, with %y of type !y.
  void checkRow(const std::string &x, const std::string &y,
                const std::string &body, llvm::ArrayRef<int64_t> symbols = {},
                const std::string &module = "module") {
    check(graph::KernelKind::row,
          "!x = tensor<" + x + ">\n!y = tensor<" + y + ">\n" + module +
              " { func.func @f(%x: !x) -> !y { " + body + " return %y : !y } }",
          symbols);
  }

  void checkReduction(const std::string &kind, const std::string &x,
                      const std::string &axes, const std::string &y) {
    checkRow(x, y,
             "%y = graph.reduce <" + kind + "> %x [" + axes + "] : (!x) -> !y");
  }
};

TEST_F(RowKernelTest, softmaxOfAnyRowLength) {
  for (std::string length : {"1", "3", "10", "63", "64", "65", "100", "1001"})
    checkRow("7x" + length + "xf32", "7x" + length + "xf32",
             "%y = graph.softmax %x {axis = 1 : i64} : (!x) -> !y");
}

TEST_F(RowKernelTest, reductionsOverAnyAxes) {
  using Row = std::pair<std::string, std::string>;
  for (const auto &[axes, result] :
       std::initializer_list<Row>{{"0", "5x71xf32"},
                                  {"1", "3x71xf32"},
                                  {"2", "3x5xf32"},
                                  {"0, 2", "5xf32"},
                                  {"0, 1", "71xf32"},
                                  {"1, 2", "3xf32"}})
    for (std::string kind : {"sum", "max", "min"})
      checkReduction(kind, "3x5x71xf32", axes, result);
}

TEST_F(RowKernelTest, fullReduction) {
  checkRow("31x170xf32", "f32",
           "%0 = graph.reduce <sum> %x [0, 1] : (!x) -> !y "
           "%y = graph.abs %0 : (!y) -> !y");
}

TEST_F(RowKernelTest, integerAndBooleanReductions) {
  checkReduction("sum", "4x91xi32", "1", "4xi32");
  checkReduction("max", "4x91xi1", "1", "4xi1");
  checkReduction("min", "4x91x3xui8", "1", "4x3xui8");
}

TEST_F(RowKernelTest, narrowSumsAreTakenInF32) {
  for (std::string type : {"f16", "bf16"})
    checkReduction("sum", "4x901x" + type, "1", "4x" + type);
}

TEST_F(RowKernelTest, indexOfTheLargest) {
  for (std::string flags : {"", ", select_last"})
    for (std::string kind : {"max", "min"}) {
      std::string op = "%y = graph.arg_reduce <" + kind + "> %x {axis = ";
      checkRow("6x91xi8", "6xi64", op + "1 : i64" + flags + "} : (!x) -> !y");
      checkRow("6x91xf32", "91xi64", op + "0 : i64" + flags + "} : (!x) -> !y");
    }
}

TEST_F(RowKernelTest, dynamicRows) {
  std::string type = "?x?xf32, affine_map<()[s0, s1] -> (s0, s1)>";
  for (int64_t n : {1, 64, 131})
    checkRow(type, type, "%y = graph.softmax %x {axis = 1 : i64} : (!x) -> !y",
             {3, n}, R"(
      module attributes {graph.symbols = [#graph.symbol<"n", 1 to 100 by 1>,
                                          #graph.symbol<"m", 1 to 500 by 1>]})");
}

TEST_F(RowKernelTest, layerNormWithResidual) {
  check(graph::KernelKind::row, R"(
    !x = tensor<3x11x97xf32>
    !s = tensor<97xf32>
    func.func @f(%x: !x, %y: !x, %s: !s, %b: !s) -> (!x, !x) {
      %0 = graph.add %x, %y : (!x, !x) -> !x
      %1 = graph.layer_norm %0 scale %s : !s shift %b : !s
        {axis = 2 : i64, epsilon = 1.0e-05 : f64} : !x -> !x
      return %0, %1 : !x, !x
    })");
}

/// The gradient of a norm and those of its scale: rows, and sums of the columns
/// of panels of 13 rows.
TEST_F(RowKernelTest, columnsOfPanels) {
  for (std::string columns : {"5", "64", "71", "300"})
    check(graph::KernelKind::row, R"(
    !x = tensor<3x3x13x)" + columns + R"(xf32>
    !r = tensor<3x3x13xf32>
    !c = tensor<3x3x)" + columns + R"(xf32>
    func.func @f(%x: !x, %g: !x) -> (!x, !r, !c, !c) {
      %0 = graph.mul %x, %g : (!x, !x) -> !x
      %1 = graph.reduce <sum> %0 [3] : (!x) -> !r
      %2 = graph.reshape %1 : (!r) -> tensor<3x3x13x1xf32>
      %3 = graph.broadcast %2 : (tensor<3x3x13x1xf32>) -> !x
      %4 = graph.sub %g, %3 : (!x, !x) -> !x
      %5 = graph.reduce <sum> %4 [2] : (!x) -> !c
      %6 = graph.reduce <max> %0 [2] : (!x) -> !c
      return %4, %1, %5, %6 : !x, !r, !c, !c
    })");
}

} // namespace
