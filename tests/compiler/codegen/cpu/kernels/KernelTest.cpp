//===- KernelTest.cpp - Pointwise, scan and irregular regions -------------===//

#include "compiler/codegen/region/Sharing.h"
#include "tests/compiler/codegen/cpu/kernels/KernelHarness.h"

using namespace tcc;
using graph::KernelKind;

namespace {

using KernelTest = KernelHarness;

/// `source` after aliases of its types: {"x", "4xf32"} defines !x.
std::string
define(std::initializer_list<std::pair<std::string, std::string>> types,
       const std::string &source) {
  std::string text;
  for (const auto &[name, shape] : types)
    text += "!" + name + " = tensor<" + shape + ">\n";
  return text + source;
}

TEST_F(KernelTest, pointwiseWithBroadcastBias) {
  check(KernelKind::pointwise, define({{"x", "2x5x7x9xf32"}}, R"(
    func.func @f(%x: !x, %b: tensor<5x1x1xf32>) -> !x {
      %0 = graph.broadcast %b : (tensor<5x1x1xf32>) -> !x
      %1 = graph.add %x, %0 : (!x, !x) -> !x
      %2 = graph.gelu %1 : (!x) -> !x
      return %2 : !x
    })"));
}

TEST_F(KernelTest, resultsOfDifferentElementTypes) {
  check(KernelKind::pointwise,
        define({{"x", "50001xf32"}, {"b", "50001xi1"}, {"i", "50001xi8"}}, R"(
    func.func @f(%x: !x, %y: !x) -> (!x, !b, !i) {
      %0 = graph.tanh %x : (!x) -> !x
      %1 = graph.compare <gt> %x, %y : (!x, !x) -> !b
      %2 = graph.cast %x : (!x) -> !i
      return %0, %1, %2 : !x, !b, !i
    })"));
}

TEST_F(KernelTest, narrowFloatsRoundAfterEachOp) {
  for (std::string type : {"f16", "bf16"})
    check(KernelKind::pointwise, define({{"x", "3x101x" + type}}, R"(
      func.func @f(%x: !x, %y: !x) -> !x {
        %0 = graph.mul %x, %y : (!x, !x) -> !x
        %1 = graph.add %0, %x : (!x, !x) -> !x
        return %1 : !x
      })"),
          {}, 0);
}

TEST_F(KernelTest, randomNumbers) {
  check(KernelKind::pointwise,
        define({{"x", "33x61xf32"}, {"d", "33x61xf64"}, {"i", "i64"}}, R"(
    func.func @f(%seed: !i, %step: !i) -> (!x, !d, !x) {
      %0 = graph.random <uniform> %seed, %step {key = 1} : (!i, !i) -> !x
      %1 = graph.random <uniform> %seed, %step {key = 2} : (!i, !i) -> !d
      %2 = graph.random <normal> %seed, %step {key = 4294967295} : (!i, !i) -> !x
      return %0, %1, %2 : !x, !d, !x
    })"));
}

TEST_F(KernelTest, doublesAndLongs) {
  check(KernelKind::pointwise, define({{"x", "77xf64"}, {"i", "77xi64"}}, R"(
    func.func @f(%x: !x, %i: !i) -> (!x, !i) {
      %0 = graph.cast %i : (!i) -> !x
      %1 = graph.exp %x : (!x) -> !x
      %2 = graph.mul %0, %1 : (!x, !x) -> !x
      %3 = graph.mul %i, %i : (!i, !i) -> !i
      return %2, %3 : !x, !i
    })"),
        {}, 1e-14);
}

TEST_F(KernelTest, transposeAndReshapeAreRead) {
  check(KernelKind::pointwise,
        define({{"x", "6x4x5xf32"}, {"t", "5x4x6xf32"}, {"y", "5x24xf32"}},
               R"(
    func.func @f(%x: !x) -> !y {
      %0 = graph.transpose %x [2, 1, 0] : (!x) -> !t
      %1 = graph.reshape %0 : (!t) -> !y
      %2 = graph.neg %1 : (!y) -> !y
      return %2 : !y
    })"));
}

// Whole tiles of 16 x 16, and the rows and columns that fill none.
TEST_F(KernelTest, transposesInTiles) {
  auto checkTranspose = [&](const std::string &x,
                            const std::string &permutation,
                            const std::string &y) {
    check(KernelKind::pointwise,
          define({{"x", x}, {"y", y}}, R"(
      func.func @f(%x: !x, %y: !y) -> (!y, !y) {
        %0 = graph.neg %x : (!x) -> !x
        %1 = graph.transpose %0 [)" + permutation +
                                           R"(] : (!x) -> !y
        %2 = graph.add %1, %y : (!y, !y) -> !y
        return %2, %1 : !y, !y
      })"));
  };
  checkTranspose("2x37x53xf32", "0, 2, 1", "2x53x37xf32");
  checkTranspose("33x3x20xf32", "2, 1, 0", "20x3x33xf32");
  checkTranspose("2x16x3x32xf64", "0, 3, 2, 1", "2x32x3x16xf64");
  checkTranspose("40x17xf16", "1, 0", "17x40xf16");
  checkTranspose("40x17xi8", "1, 0", "17x40xi8");
  // An axis that is shorter than a tile.
  checkTranspose("3x37x9xf32", "0, 2, 1", "3x9x37xf32");
  checkTranspose("3x9x37xf32", "0, 2, 1", "3x37x9xf32");
  checkTranspose("3x7x40x2xbf16", "0, 2, 1, 3", "3x40x7x2xbf16");
  // Pairs and fours that stay neighbours.
  checkTranspose("2x37x53x2xbf16", "0, 2, 1, 3", "2x53x37x2xbf16");
  checkTranspose("33x3x20x2xf16", "2, 1, 0, 3", "20x3x33x2xf16");
  checkTranspose("16x48x4xi8", "1, 0, 2", "48x16x4xi8");
}

// Filters in panels, as they lie and mirrored: rows and columns of the window
// are nearer in memory than channels, which are tiles of 16 or, for 40, are
// not. What is read in one direction is read in lines of them.
TEST_F(KernelTest, filtersInPanels) {
  for (int64_t channels : {32, 40, 64}) {
    std::string x = "64x" + std::to_string(channels);
    std::string depth = std::to_string(9 * channels);
    std::string pairs = std::to_string(9 * channels / 2);
    check(KernelKind::pointwise,
          define({{"x", x + "x3x3xf32"},
                  {"h", x + "x3x3xbf16"},
                  {"t", "64x3x3x" + std::to_string(channels) + "xbf16"},
                  {"r", "1x1x64x" + pairs + "x2xbf16"},
                  {"p", "1x1x" + pairs + "x64x2xbf16"}},
                 R"(
      func.func @f(%x: !x) -> (!p, !p) {
        %0 = graph.cast %x : (!x) -> !h
        %1 = graph.transpose %0 [0, 2, 3, 1] : (!h) -> !t
        %2 = graph.reshape %1 : (!t) -> !r
        %3 = graph.transpose %2 [0, 1, 3, 2, 4] : (!r) -> !p
        %4 = graph.slice %0 {starts = affine_map<() -> (0, 0, 2, 2)>, steps = array<i64: 1, 1, -1, -1>} : (!h) -> !h
        %5 = graph.transpose %4 [0, 2, 3, 1] : (!h) -> !t
        %6 = graph.reshape %5 : (!t) -> !r
        %7 = graph.transpose %6 [0, 1, 3, 2, 4] : (!r) -> !p
        return %3, %7 : !p, !p
      })"));
    // As a data gradient reads them: the other channels are the rows.
    std::string columns = std::to_string(channels);
    check(KernelKind::pointwise,
          define({{"x", x + "x3x3xf32"},
                  {"h", x + "x3x3xbf16"},
                  {"t", columns + "x3x3x64xbf16"},
                  {"r", "1x1x" + columns + "x288x2xbf16"},
                  {"p", "1x1x288x" + columns + "x2xbf16"}},
                 R"(
      func.func @f(%x: !x) -> !p {
        %0 = graph.cast %x : (!x) -> !h
        %1 = graph.slice %0 {starts = affine_map<() -> (0, 0, 2, 2)>, steps = array<i64: 1, 1, -1, -1>} : (!h) -> !h
        %2 = graph.transpose %1 [1, 2, 3, 0] : (!h) -> !t
        %3 = graph.reshape %2 : (!t) -> !r
        %4 = graph.transpose %3 [0, 1, 3, 2, 4] : (!r) -> !p
        return %4 : !p
      })"));
    check(KernelKind::pointwise,
          define({{"x", x + "x3x3xf32"},
                  {"t", "64x3x3x" + std::to_string(channels) + "xf32"},
                  {"r", "1x64x" + depth + "xf32"},
                  {"p", "1x" + depth + "x64xf32"}},
                 R"(
      func.func @f(%x: !x) -> !p {
        %0 = graph.transpose %x [0, 2, 3, 1] : (!x) -> !t
        %1 = graph.reshape %0 : (!t) -> !r
        %2 = graph.transpose %1 [0, 2, 1] : (!r) -> !p
        return %2 : !p
      })"));
  }
}

// Lines are of f32, or of what is rounded once: not of what is widened.
TEST_F(KernelTest, widenedFiltersInPanels) {
  check(KernelKind::pointwise, define({{"x", "64x32x3x3xf32"},
                                       {"h", "64x32x3x3xf64"},
                                       {"t", "64x3x3x32xf64"},
                                       {"r", "1x64x288xf64"},
                                       {"p", "1x288x64xf64"}},
                                      R"(
    func.func @f(%x: !x) -> !p {
      %0 = graph.cast %x : (!x) -> !h
      %1 = graph.transpose %0 [0, 2, 3, 1] : (!h) -> !t
      %2 = graph.reshape %1 : (!t) -> !r
      %3 = graph.transpose %2 [0, 2, 1] : (!r) -> !p
      return %3 : !p
    })"));
}

// What is computed in another order than that of the results: one input is
// transposed instead of the others and the results.
TEST_F(KernelTest, transposesAreMovedToInputs) {
  check(KernelKind::pointwise,
        define({{"x", "5x37x9xf32"}, {"t", "5x9x37xf32"}, {"s", "f32"}}, R"(
      func.func @f(%x: !x, %z: !x, %y: !t, %s: !s) -> (!x, !x) {
        %0 = graph.broadcast %s : (!s) -> !t
        %1 = graph.transpose %x [0, 2, 1] : (!x) -> !t
        %2 = graph.transpose %z [0, 2, 1] : (!x) -> !t
        %3 = graph.mul %0, %y : (!t, !t) -> !t
        %4 = graph.sub %1, %3 : (!t, !t) -> !t
        %5 = graph.add %4, %2 : (!t, !t) -> !t
        %6 = graph.transpose %4 [0, 2, 1] : (!t) -> !x
        %7 = graph.transpose %5 [0, 2, 1] : (!t) -> !x
        return %6, %7 : !x, !x
      })"));
}

TEST_F(KernelTest, transposesOfDynamicExtents) {
  for (int64_t n : {1, 16, 37})
    check(KernelKind::pointwise, R"(
      !x = tensor<?x21xf32, affine_map<()[s0] -> (s0, 21)>>
      !y = tensor<21x?xf32, affine_map<()[s0] -> (21, s0)>>
      module attributes {graph.symbols = [#graph.symbol<"n", 1 to 64 by 1>]} {
        func.func @f(%x: !x) -> !y {
          %0 = graph.transpose %x [1, 0] : (!x) -> !y
          return %0 : !y
        }
      })",
          {n});
}

TEST_F(KernelTest, concatPadAndSlice) {
  check(KernelKind::pointwise, define({{"x", "3x4xf32"},
                                       {"z", "3x2xf32"},
                                       {"c", "3x6xf32"},
                                       {"y", "5x8xf32"}},
                                      R"(
    func.func @f(%x: !x, %z: !z, %v: tensor<f32>) -> (!y, !y) {
      %0 = graph.concat %x, %z {axis = 1 : i64} : (!x, !z) -> !c
      %1 = graph.pad %0, %v {low = array<i64: 1, 2>, high = array<i64: 1, 0>,
        interior = array<i64: 0, 0>} : (!c, tensor<f32>) -> !y
      %2 = graph.slice %1 {starts = affine_map<() -> (4, 0)>,
        steps = array<i64: -1, 1>} : (!y) -> !y
      return %1, %2 : !y, !y
    })"));
}

/// Seven places along the rows, of one element to three vectors: alone and as
/// the sum of two orders of them, of which one begins inside a place, of floats
/// and of what is made wider.
TEST_F(KernelTest, rowsOfManyPlaces) {
  for (std::string element : {"f32", "bf16"}) {
    std::string places = define({{"a", "5x16x" + element},
                                 {"b", "5x1x" + element},
                                 {"c", "5x33x" + element},
                                 {"x", "5x118x" + element},
                                 {"y", "5x116x" + element}},
                                R"(
      func.func @f(%a: !a, %b: !b, %c: !c) -> !y {
        %0 = graph.concat %a, %b, %c, %b, %c, %c, %b {axis = 1 : i64} : (!a, !b, !c, !b, !c, !c, !b) -> !x
        %1 = graph.concat %c, %a, %b, %b, %c, %c, %b {axis = 1 : i64} : (!c, !a, !b, !b, !c, !c, !b) -> !x
        %2 = graph.add %0, %1 : (!x, !x) -> !x
        %3 = graph.slice %2 {starts = affine_map<() -> (0, 2)>, steps = array<i64: 1, 1>} : (!x) -> !y
        return %3 : !y
      })");
    check(KernelKind::pointwise, places);
  }
  for (int axis : {0, 1})
    check(KernelKind::row, define({{"a", "5x16xf32"},
                                   {"b", "5x1xf32"},
                                   {"c", "5x33xf32"},
                                   {"x", "5x101xf32"},
                                   {"y", axis ? "5xf32" : "101xf32"}},
                                  R"(
      func.func @f(%a: !a, %b: !b, %c: !c) -> !y {
        %0 = graph.concat %a, %b, %c, %b, %c, %a, %b {axis = 1 : i64} : (!a, !b, !c, !b, !c, !a, !b) -> !x
        %1 = graph.reduce <sum> %0 [)" +
                                      std::to_string(axis) +
                                      R"(] : (!x) -> !y
        return %1 : !y
      })"));
}

/// One of five places is read by columns: branches stay.
TEST_F(KernelTest, rowsOfAPlaceThatIsNotAdjacent) {
  check(KernelKind::pointwise, define({{"a", "5x16xf32"},
                                       {"t", "7x5xf32"},
                                       {"d", "5x7xf32"},
                                       {"y", "5x71xf32"}},
                                      R"(
    func.func @f(%a: !a, %t: !t) -> !y {
      %d = graph.transpose %t [1, 0] : (!t) -> !d
      %0 = graph.concat %a, %a, %d, %a, %a {axis = 1 : i64} : (!a, !a, !d, !a, !a) -> !y
      return %0 : !y
    })"));
}

const std::string kGather =
    define({{"x", "5x301xf32"}, {"i", "7xi64"}, {"y", "7x301xf32"}}, R"(
    func.func @f(%x: !x, %i: !i) -> !y {
      %0 = graph.gather %x, %i {axis = 0 : i64} : (!x, !i) -> !y
      return %0 : !y
    })");

TEST_F(KernelTest, gatherReadsRows) { check(KernelKind::pointwise, kGather); }

TEST_F(KernelTest, indexOutOfRangeSetsTheFault) {
  parse(KernelKind::pointwise, kGather);
  compile();
  ASSERT_TRUE(getKernel().getInfo().usesFault);
  std::vector<HostTensor> inputs = makeInputs();
  inputs[1].elements[3].i = -5;
  EXPECT_EQ(run(inputs).fault[0], 0) << "negative ones count from the end";
  inputs[1].elements[3].i = 5;
  KernelRun result = run(inputs);
  EXPECT_EQ(result.fault[0], 1);
  EXPECT_EQ(result.fault[1], 5);
}

TEST_F(KernelTest, dynamicExtents) {
  for (int64_t n : {1, 3, 70})
    check(KernelKind::pointwise, R"(
      !x = tensor<?x?xf32, affine_map<()[s0, s1] -> (s0, s1 * 2)>>
      module attributes {graph.symbols = [#graph.symbol<"n", 1 to 100 by 1>,
                                          #graph.symbol<"m", 1 to 5000 by 1>]} {
        func.func @f(%x: !x) -> !x {
          %0 = graph.exp %x : (!x) -> !x
          return %0 : !x
        }
      })",
          {n, 10 * n + 1});
}

TEST_F(KernelTest, runningSums) {
  for (std::string flags : {"", ", exclusive", ", reverse, exclusive"})
    for (std::string axis : {"0", "1"})
      check(KernelKind::scan, define({{"x", "4x31xf32"}}, R"(
        func.func @f(%x: !x) -> !x {
          %0 = graph.cumulative <sum> %x {axis = )" + axis + " : i64" +
                                                              flags + R"(}
            : (!x) -> !x
          return %0 : !x
        })"));
}

TEST_F(KernelTest, scatterAppliesUpdatesInOrder) {
  for (std::string kind : {"none", "add", "max"})
    check(KernelKind::irregular,
          define({{"x", "4x6xf32"}, {"i", "9x6xi64"}, {"u", "9x6xf32"}}, R"(
      func.func @f(%x: !x, %i: !i, %u: !u) -> !x {
        %0 = graph.scatter_elements %x, %i, %u {axis = 0 : i64,
          kind = #graph<scatter_kind<)" + kind + R"(>>} : (!x, !i, !u) -> !x
        return %0 : !x
      })"));
}

TEST_F(KernelTest, topKIsSorted) {
  for (std::string flags : {"", ", smallest"})
    check(KernelKind::irregular,
          define({{"x", "5x41xf32"}, {"v", "5x7xf32"}, {"i", "5x7xi64"}}, R"(
      func.func @f(%x: !x) -> (!v, !i) {
        %0:2 = graph.top_k %x {k = 7 : i64, axis = 1 : i64)" + flags + R"(}
          : (!x) -> (!v, !i)
        return %0#0, %0#1 : !v, !i
      })"));
}

/// The best 70 of rows are a list that is cut; of 90 none is left out.
TEST_F(KernelTest, topKOfManyIsSorted) {
  for (std::string type : {"f32", "f16", "f64", "i64", "ui8", "i1"})
    for (std::string extent : {"3000", "90"})
      for (std::string flags : {"", ", smallest"})
        check(KernelKind::irregular,
              define({{"x", "3x" + extent + "x2x" + type},
                      {"v", "3x70x2x" + type},
                      {"i", "3x70x2xi64"}},
                     R"(
      func.func @f(%x: !x) -> (!v, !i) {
        %0:2 = graph.top_k %x {k = 70 : i64, axis = 1 : i64)" +
                         flags + R"(}
          : (!x) -> (!v, !i)
        return %0#0, %0#1 : !v, !i
      })"));
}

/// About half of the elements are true: some results have no room for all.
TEST_F(KernelTest, findStopsWhereTheResultEnds) {
  for (std::string count : {"0", "5", "90"})
    check(KernelKind::irregular,
          define({{"x", "100xf32"}, {"p", count + "xi64"}}, R"(
      func.func @f(%x: !x) -> !p {
        %0 = graph.neg %x : (!x) -> !x
        %1 = graph.compare <gt> %x, %0 : (!x, !x) -> tensor<100xi1>
        %2 = graph.find %1 : (tensor<100xi1>) -> !p
        return %2 : !p
      })"));
}

TEST_F(KernelTest, chosenBoxesDoNotOverlap) {
  for (std::string limit : {"-1", "3", "100"})
    for (std::string places : {"1", "40"})
      check(KernelKind::irregular, define({{"b", "2x4x120xf32"},
                                           {"s", "2x3x120xf32"},
                                           {"c", "2x3x120xi1"},
                                           {"r", "2x3x" + places + "xi64"}},
                                          R"(
      func.func @f(%b: !b, %s: !s, %c: !c) -> !r {
        %n = graph.constant dense<)" + limit + R"(> : tensor<i64>
        %t = graph.constant dense<0.2> : tensor<f32>
        %0 = graph.choose_boxes %b, %s, %c, %n, %t
          : (!b, !s, !c, tensor<i64>, tensor<f32>) -> !r
        return %0 : !r
      })"));
}

TEST_F(KernelTest, resultMayLieInTheInputThatIsReadInPlace) {
  parse(KernelKind::pointwise, define({{"x", "100xf32"}}, R"(
    func.func @f(%x: !x, %y: !x) -> !x {
      %0 = graph.slice %y {starts = affine_map<() -> (99)>,
        steps = array<i64: -1>} : (!x) -> !x
      %1 = graph.add %x, %0 : (!x, !x) -> !x
      return %1 : !x
    })"));
  EXPECT_TRUE(codegen::canShareBuffer(getRegion(), 0, 0));
  EXPECT_FALSE(codegen::canShareBuffer(getRegion(), 0, 1));
}

} // namespace
