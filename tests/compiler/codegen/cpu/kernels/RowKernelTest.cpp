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

/// As in a group norm with the channels last: the last axis is too short for
/// lanes, and a task has 256 columns of whole groups at most.
TEST_F(RowKernelTest, groupsOfColumns) {
  using Groups = std::pair<std::string, std::string>;
  for (const auto &[groups, size] : std::initializer_list<Groups>{
           {"5", "2"}, {"100", "3"}, {"4", "8"}, {"40", "8"}, {"2", "63"}}) {
    std::string types = "!x = tensor<2x300x" + groups + "x" + size +
                        "xf32>\n!r = tensor<2x" + groups +
                        "xf32>\n!k = tensor<2x1x" + groups + "x1xf32>\n";
    check(graph::KernelKind::row, types + R"(
    func.func @f(%x: !x, %s: !r) -> (!x, !r, !r) {
      %0 = graph.reduce <sum> %x [1, 3] : (!x) -> !r
      %c = graph.constant dense<1.0e-4> : !r
      %m = graph.mul %0, %c : (!r, !r) -> !r
      %1 = graph.add %m, %s : (!r, !r) -> !r
      %2 = graph.reshape %1 : (!r) -> !k
      %3 = graph.broadcast %2 : (!k) -> !x
      %4 = graph.sub %x, %3 : (!x, !x) -> !x
      %5 = graph.mul %4, %4 : (!x, !x) -> !x
      %6 = graph.reduce <sum> %5 [1, 3] : (!x) -> !r
      %7 = graph.reduce <max> %4 [1, 3] : (!x) -> !r
      %8 = graph.reshape %6 : (!r) -> !k
      %9 = graph.broadcast %8 : (!k) -> !x
      %10 = graph.div %4, %9 : (!x, !x) -> !x
      return %10, %6, %7 : !x, !r, !r
    })");
  }
  for (std::string type : {"f16", "i32", "i1", "ui8"})
    checkReduction(type == "i1" || type == "ui8" ? "max" : "sum",
                   "3x41x5x6x" + type, "1, 3", "3x5x" + type);
}

/// A softmax over groups, whose exponentials are kept in the scratch.
TEST_F(RowKernelTest, keptValuesOfGroups) {
  for (std::string type : {"f32", "f16"})
    check(graph::KernelKind::row, "!x = tensor<3x17x5x8x" + type +
                                      ">\n!r = tensor<3x5x" + type +
                                      ">\n!k = tensor<3x1x5x1x" + type + R"(>
    func.func @f(%x: !x) -> !x {
      %0 = graph.reduce <max> %x [1, 3] : (!x) -> !r
      %1 = graph.reshape %0 : (!r) -> !k
      %2 = graph.broadcast %1 : (!k) -> !x
      %3 = graph.sub %x, %2 : (!x, !x) -> !x
      %4 = graph.exp %3 : (!x) -> !x
      %5 = graph.reduce <sum> %4 [1, 3] : (!x) -> !r
      %6 = graph.reshape %5 : (!r) -> !k
      %7 = graph.broadcast %6 : (!k) -> !x
      %8 = graph.div %4, %7 : (!x, !x) -> !x
      return %8 : !x
    })");
}

TEST_F(RowKernelTest, dynamicGroups) {
  std::string x = "2x?x?x4xf32, affine_map<()[s0, s1] -> (2, s0, s1, 4)>";
  std::string y = "2x?xf32, affine_map<()[s0, s1] -> (2, s1)>";
  for (int64_t n : {1, 3, 131})
    checkRow(x, y, "%y = graph.reduce <sum> %x [1, 3] : (!x) -> !y", {5, n}, R"(
      module attributes {graph.symbols = [#graph.symbol<"n", 1 to 100 by 1>,
                                          #graph.symbol<"m", 1 to 500 by 1>]})");
}

} // namespace
