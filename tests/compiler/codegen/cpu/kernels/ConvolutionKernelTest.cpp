//===- ConvolutionKernelTest.cpp - Regions with windows -------------------===//

#include "tests/compiler/codegen/cpu/kernels/KernelHarness.h"

using namespace tcc;
using graph::KernelKind;

namespace {

class ConvolutionKernelTest : public KernelHarness {
protected:
  /// Checks a convolution of two dimensions; `window` has its attributes but
  /// for filters and groups.
  void checkConvolution(KernelKind kind, const std::string &x,
                        const std::string &filter, const std::string &y,
                        const std::string &attributes) {
    check(kind, "!x = tensor<" + x + ">\n!w = tensor<" + filter +
                    ">\n!y = tensor<" + y +
                    ">\n"
                    R"(
      func.func @f(%x: !x, %w: !w, %b: !y) -> !y {
        %0 = graph.conv %x, %w {)" +
                    attributes + R"(} : (!x, !w) -> !y
        %1 = graph.add %0, %b : (!y, !y) -> !y
        %2 = graph.relu %1 : (!y) -> !y
        return %2 : !y
      })");
  }

  /// Checks the gradient of a filter of one group, or of narrow ones.
  void checkGradient(const std::string &x, const std::string &gradient,
                     const std::string &y, const std::string &window,
                     int64_t groups = 1) {
    check(groups == 1 ? KernelKind::contraction : KernelKind::window_sums,
          "!x = tensor<" + x + ">\n!d = tensor<" + gradient +
              ">\n!y = tensor<" + y +
              ">\nfunc.func @f(%x: !x, %d: !d) -> !y {\n%0 = "
              "graph.conv_filter_gradient %x, %d {groups = " +
              std::to_string(groups) + " : i64, " + window +
              "} : (!x, !d) -> !y\nreturn %0 : !y\n}",
          {}, 1e-5);
  }
};

/// Attributes of a window: extents, strides, padding on both sides, dilations.
std::string makeWindow(const std::string &extents, const std::string &strides,
                       const std::string &padding,
                       const std::string &dilations) {
  return "window = array<i64: " + extents +
         ">, strides = array<i64: " + strides +
         ">, pad_low = array<i64: " + padding +
         ">, pad_high = array<i64: " + padding +
         ">, dilations = array<i64: " + dilations + ">";
}

TEST_F(ConvolutionKernelTest, convolutionsOfPairs) {
  // Patches are copied, read where they lie, or pixels.
  auto checkPairs = [&](const std::string &channels, const std::string &depth,
                        const std::string &window) {
    checkConvolution(KernelKind::contraction, "1x15x17x" + channels + "xbf16",
                     "1x1x" + depth + "x16xbf16", "1x15x17x13xf32",
                     "packed_filter, channels_last, filters = 13 : i64, "
                     "groups = 1 : i64, " +
                         window);
  };
  std::string three = makeWindow("3, 3", "1, 1", "1, 1", "1, 1");
  checkPairs("6", "54", three);
  checkPairs("34", "306", three);
  std::string one = makeWindow("1, 1", "1, 1", "0, 0", "1, 1");
  checkPairs("34", "34", one);
  // Odd channels: runs begin within pairs, and a zero follows the last.
  checkPairs("7", "64", three);
  checkPairs("35", "316", three);
  checkPairs("35", "36", one);
  checkPairs("3", "28", makeWindow("3, 3", "1, 1", "1, 2", "1, 2"));
  checkConvolution(KernelKind::contraction, "2x15x17x10xbf16", "2x1x46x16xbf16",
                   "2x15x17x6xf32",
                   "packed_filter, channels_last, filters = 6 : i64, "
                   "groups = 2 : i64, " +
                       three);
  checkConvolution(KernelKind::contraction, "2x30x22x3xbf16", "1x1x148x64xbf16",
                   "2x15x11x64xf32",
                   "packed_filter, channels_last, filters = 64 : i64, "
                   "groups = 1 : i64, " +
                       makeWindow("7, 7", "2, 2", "3, 3", "1, 1"));
}

/// Channels that fill tile registers: windows share what is copied with the
/// padding, over rows, images and blocks of 1 to 3 axes.
TEST_F(ConvolutionKernelTest, convolutionsOfPaddedPairs) {
  auto checkPadded = [&](const std::string &x, const std::string &filter,
                         const std::string &y, const std::string &window) {
    checkConvolution(KernelKind::contraction, x, filter, y,
                     "packed_filter, channels_last, filters = 20 : i64, "
                     "groups = 1 : i64, " +
                         window);
  };
  std::string three = makeWindow("3, 3", "1, 1", "1, 1", "1, 1");
  checkPadded("3x9x11x32xbf16", "1x1x288x32xbf16", "3x9x11x20xf32", three);
  checkPadded("1x31x29x64xbf16", "1x1x576x32xbf16", "1x31x29x20xf32", three);
  // Uneven padding and dilated taps.
  checkPadded("2x13x14x32xbf16", "1x1x192x32xbf16", "2x11x13x20xf32",
              "window = array<i64: 2, 3>, strides = array<i64: 1, 1>, "
              "pad_low = array<i64: 1, 0>, pad_high = array<i64: 0, 3>, "
              "dilations = array<i64: 3, 2>");
  checkPadded("2x40x32xbf16", "1x1x160x32xbf16", "2x42x20xf32",
              makeWindow("5", "1", "3", "1"));
  checkPadded("1x5x6x9x32xbf16", "1x1x864x32xbf16", "1x5x6x9x20xf32",
              makeWindow("3, 3, 3", "1, 1, 1", "1, 1, 1", "1, 1, 1"));
}

TEST_F(ConvolutionKernelTest, convolutionsOfComputedPairs) {
  check(KernelKind::contraction,
        R"(
    !x = tensor<2x5x4x3xf32>
    !n = tensor<2x5x4x3xbf16>
    !f = tensor<1x1x28x16xbf16>
    !y = tensor<2x5x4x7xf32>
    func.func @f(%x: !x, %f: !f) -> !y {
      %0 = graph.cast %x : (!x) -> !n
      %1 = graph.conv %0, %f {packed_filter, channels_last, filters = 7 : i64,
          groups = 1 : i64, )" +
            makeWindow("3, 3", "1, 1", "1, 1", "1, 1") +
            R"(} : (!n, !f) -> !y
      return %1 : !y
    })",
        {}, 1e-5);
}

/// Also what vectors of filters compute, to the bit.
TEST_F(ConvolutionKernelTest, convolutionsByPlanes) {
  auto checkPlanes = [&](const std::string &x, const std::string &filter,
                         const std::string &y, int64_t filters,
                         const std::string &window) {
    checkConvolution(
        KernelKind::contraction, x, filter, y,
        "packed_filter, channels_last, filters = " + std::to_string(filters) +
            " : i64, groups = 1 : i64, " + window);
    ASSERT_TRUE(getKernel().getInfo().plan.contains("plane_rows"));
    std::vector<HostTensor> inputs = makeInputs();
    // A CPU without tile registers, whose bits differ.
    compile("x86-64-v3");
    KernelRun planes = run(inputs);
    mlir::Builder b(getRegion().getContext());
    bool arePairs = llvm::StringRef(x).ends_with("bf16");
    auto blocks = arePairs ? b.getDenseI64ArrayAttr({48, 64, 16})
                           : b.getDenseI64ArrayAttr({12, 64, 9});
    getRegion()->setAttr(
        "plan", b.getDictionaryAttr(b.getNamedAttr("blocking", blocks)));
    compile("x86-64-v3");
    EXPECT_EQ(run(inputs).results, planes.results);
  };
  std::string three = makeWindow("3, 3", "1, 1", "1, 1", "1, 1");
  // One channel; channels one by one; blocks of them; whole vectors.
  checkPlanes("2x15x40x1xf32", "1x1x9x16xf32", "2x15x40x8xf32", 8, three);
  checkPlanes("2x15x17x3xf32", "1x1x27x16xf32", "2x15x17x5xf32", 5, three);
  checkPlanes("2x15x49x12xf32", "1x1x108x16xf32", "2x15x49x2xf32", 2, three);
  checkPlanes("1x5x35x32xf32", "1x1x288x16xf32", "1x5x35x1xf32", 1, three);
  // Phases of columns; taps that lie apart; more padding than pixels.
  checkPlanes("2x21x70x4xf32", "1x1x196x16xf32", "2x11x24x4xf32", 4,
              makeWindow("7, 7", "2, 3", "3, 4", "1, 1"));
  checkPlanes("1x20x35x8xf32", "1x1x200x16xf32", "1x12x19x3xf32", 3,
              makeWindow("5, 5", "1, 1", "2, 0", "3, 4"));
  checkPlanes("1x3x5x1xf32", "1x1x45x16xf32", "1x9x31x12xf32", 12,
              makeWindow("5, 9", "1, 1", "5, 17", "1, 1"));
  // Units of channels, one by one and in blocks.
  checkPlanes("2x15x40x2xbf16", "1x1x18x16xbf16", "2x15x40x8xf32", 8, three);
  checkPlanes("2x15x17x6xbf16", "1x1x54x16xbf16", "2x15x17x5xf32", 5, three);
  checkPlanes("2x21x70x8xbf16", "1x1x392x16xbf16", "2x11x24x4xf32", 4,
              makeWindow("7, 7", "2, 3", "3, 4", "1, 1"));
  // Units that begin in one tap, or row of taps, and end in the next; an odd
  // number of elements, and an even one.
  checkPlanes("2x15x40x1xbf16", "1x1x10x16xbf16", "2x15x40x8xf32", 8, three);
  checkPlanes("2x15x17x3xbf16", "1x1x76x16xbf16", "2x15x17x5xf32", 5,
              makeWindow("5, 5", "1, 1", "2, 2", "1, 1"));
  checkPlanes("1x14x41x3xbf16", "1x1x108x16xbf16", "1x13x40x4xf32", 4,
              makeWindow("6, 6", "1, 1", "2, 2", "1, 1"));
  checkPlanes("1x3x5x1xbf16", "1x1x46x16xbf16", "1x9x31x12xf32", 12,
              makeWindow("5, 9", "1, 1", "5, 17", "1, 1"));
  // No rows.
  checkConvolution(KernelKind::contraction, "0x15x40x1xf32", "1x1x9x16xf32",
                   "0x15x40x8xf32",
                   "packed_filter, channels_last, filters = 8 : i64, "
                   "groups = 1 : i64, " +
                       three);
}

// Runs that are zeros for all rows of a tile are not multiplied.
TEST_F(ConvolutionKernelTest, convolutionsThatReadMuchPadding) {
  auto checkWindow = [&](const std::string &x, const std::string &filter,
                         const std::string &y, const std::string &window) {
    checkConvolution(KernelKind::contraction, x, filter, y,
                     "packed_filter, channels_last, filters = 20 : i64, "
                     "groups = 1 : i64, " +
                         window);
  };
  checkWindow("2x14x15x16xf32", "1x1x144x32xf32", "2x14x15x20xf32",
              makeWindow("3, 3", "1, 1", "12, 12", "12, 12"));
  checkWindow("1x2x5x7x16xf32", "1x1x432x32xf32", "1x2x5x7x20xf32",
              makeWindow("3, 3, 3", "1, 1, 1", "1, 1, 1", "1, 1, 1"));
  checkWindow("2x5x13x17xf32", "1x1x425x32xf32", "2x5x7x20xf32",
              makeWindow("5, 5", "1, 2", "2, 2", "1, 1"));
}

TEST_F(ConvolutionKernelTest, convolutionsOfOddSizes) {
  auto checkWindow = [&](const std::string &filter, const std::string &y,
                         const std::string &window) {
    checkConvolution(KernelKind::contraction, "2x15x17x6xf32", filter, y,
                     "channels_last, filters = 10 : i64, groups = 1 : i64, " +
                         window);
  };
  checkWindow("10x1x1x6xf32", "2x15x17x10xf32",
              makeWindow("1, 1", "1, 1", "0, 0", "1, 1"));
  checkWindow("10x3x3x6xf32", "2x15x17x10xf32",
              makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
  checkWindow("10x3x3x6xf32", "2x8x9x10xf32",
              makeWindow("3, 3", "2, 2", "1, 1", "1, 1"));
  checkWindow("10x1x1x6xf32", "2x8x9x10xf32",
              makeWindow("1, 1", "2, 2", "0, 0", "1, 1"));
  checkWindow("10x3x3x6xf32", "2x5x5x10xf32",
              makeWindow("3, 3", "3, 4", "1, 2", "1, 2"));
  checkWindow("10x3x1x6xf32", "2x13x17x10xf32",
              makeWindow("3, 1", "1, 1", "1, 0", "2, 1"));
  // More padding than the window is wide.
  checkWindow("10x1x3x6xf32", "2x15x23x10xf32",
              makeWindow("1, 3", "1, 1", "0, 4", "1, 1"));
}

// Channels in whole vectors are copied as such, in several blocks of k.
TEST_F(ConvolutionKernelTest, convolutionsOfWholeVectors) {
  auto checkWindow = [&](const std::string &filter, const std::string &y,
                         const std::string &attributes) {
    checkConvolution(KernelKind::contraction, "2x9x11x32xf32", filter, y,
                     "channels_last, filters = 70 : i64, " + attributes);
  };
  std::string one = "groups = 1 : i64, ", packed = "packed_filter, " + one;
  checkWindow("70x3x3x32xf32", "2x9x11x70xf32",
              one + makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
  checkWindow("1x2x288x64xf32", "2x9x11x70xf32",
              packed + makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
  checkWindow("1x2x288x64xf32", "2x4x6x70xf32",
              packed + makeWindow("3, 3", "2, 2", "1, 2", "2, 2"));
  checkWindow("1x2x32x64xf32", "2x9x11x70xf32",
              packed + makeWindow("1, 1", "1, 1", "0, 0", "1, 1"));
  checkWindow("2x1x144x48xf32", "2x9x11x70xf32",
              "packed_filter, groups = 2 : i64, " +
                  makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
}

TEST_F(ConvolutionKernelTest, convolutionsOfOtherRanks) {
  checkConvolution(KernelKind::contraction, "2x37x6xf32", "10x5x6xf32",
                   "2x19x10xf32",
                   "channels_last, filters = 10 : i64, groups = 1 : i64, " +
                       makeWindow("5", "2", "2", "1"));
  checkConvolution(KernelKind::contraction, "1x5x6x7x3xf32", "4x3x2x3x3xf32",
                   "1x5x5x7x4xf32",
                   "channels_last, filters = 4 : i64, groups = 1 : i64, " +
                       makeWindow("3, 2, 3", "1, 1, 1", "1, 0, 1", "1, 1, 1"));
}

TEST_F(ConvolutionKernelTest, convolutionOfAComputedInput) {
  check(KernelKind::contraction, R"(
    !x = tensor<2x7x9x6xf32>
    !w = tensor<10x3x3x6xf32>
    !y = tensor<2x7x9x10xf32>
    func.func @f(%x: !x, %w: !w) -> !y {
      %0 = graph.neg %x : (!x) -> !x
      %1 = graph.conv %0, %w {channels_last, filters = 10 : i64,
        groups = 1 : i64, )" + makeWindow("3, 3", "1, 1", "1, 1", "1, 1") +
                                     R"(} : (!x, !w) -> !y
      return %1 : !y
    })");
}

/// A convolution with two parts of so many filters, of which the first has no
/// first tap and the second only that; with or without the promised zeros.
std::string makeParts(int64_t part, bool hasZeros) {
  std::string filters = std::to_string(2 * part);
  return "!x = tensor<2x9x16xf32>\n!w = tensor<" + filters +
         "x3x16xf32>\n!y = tensor<2x9x" + filters + "xf32>\n!p = tensor<2x" +
         std::to_string(part) + R"(x3x16xf32>
    func.func @f(%x: !x, %w: !w) -> !y {
      %0 = graph.constant dense<[[0.0, 1.0, 1.0], [1.0, 0.0, 0.0]]> : tensor<2x3xf32>
      %1 = graph.reshape %0 : (tensor<2x3xf32>) -> tensor<2x1x3x1xf32>
      %2 = graph.broadcast %1 : (tensor<2x1x3x1xf32>) -> !p
      %3 = graph.reshape %2 : (!p) -> !w
      %4 = graph.mul %w, %3 : (!w, !w) -> !w
      %5 = graph.conv %x, )" +
         (hasZeros ? "%4" : "%w") +
         R"( {channels_last, groups = 1 : i64, zero_taps = array<i64: 1, 6>,
        filters = )" +
         filters + " : i64, " + makeWindow("3", "1", "1", "1") +
         R"(} : (!x, !w) -> !y
      return %5 : !y
    })";
}

TEST_F(ConvolutionKernelTest, zeroTaps) {
  auto checkParts = [&](int64_t part, bool breaksPromise) {
    SCOPED_TRACE(part);
    ASSERT_NO_FATAL_FAILURE(
        parse(KernelKind::contraction, makeParts(part, !breaksPromise), {}));
    ASSERT_NO_FATAL_FAILURE(compile("native"));
    std::vector<HostTensor> inputs = makeInputs();
    KernelRun have = run(inputs);
    ASSERT_NO_FATAL_FAILURE(
        parse(KernelKind::contraction, makeParts(part, true), {}));
    compareWithReference(inputs, have, 1e-5);
  };
  // Zeros of whole panels are not even read.
  checkParts(64, /*breaksPromise=*/true);
  checkParts(128, /*breaksPromise=*/true);
  checkParts(32, /*breaksPromise=*/false);
}

TEST_F(ConvolutionKernelTest, groupsOfAConvolution) {
  checkConvolution(KernelKind::contraction, "2x15x17x6xf32", "9x3x3x2xf32",
                   "2x13x15x9xf32",
                   "channels_last, filters = 9 : i64, groups = 3 : i64, " +
                       makeWindow("3, 3", "1, 1", "0, 0", "1, 1"));
}

TEST_F(ConvolutionKernelTest, narrowGroupsOfAConvolution) {
  struct Case {
    int64_t channels, filters; // of one group
    std::string type;
  };
  for (const Case &c : {Case{2, 2, "f32"},
                        {4, 4, "f32"},
                        {1, 4, "f32"},
                        {5, 8, "f32"},
                        {3, 4, "f64"},
                        {8, 8, "f16"}}) {
    int64_t groups = 5;
    std::string filters = std::to_string(groups * c.filters);
    for (std::string filter : {std::to_string(9 * c.channels) + "x" + filters,
                               filters + "x3x3x" + std::to_string(c.channels)})
      checkConvolution(
          KernelKind::window,
          "2x7x9x" + std::to_string(groups * c.channels) + "x" + c.type,
          filter + "x" + c.type, "2x7x9x" + filters + "x" + c.type,
          (filter.ends_with("x" + filters) ? "packed_filter, " : "") +
              ("channels_last, groups = " + std::to_string(groups)) +
              " : i64, filters = " + filters + " : i64, " +
              makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
  }
}

TEST_F(ConvolutionKernelTest, depthwiseConvolutionsWithTheChannelsLast) {
  for (int64_t channels : {6, 101}) {
    std::string count = std::to_string(channels), type = count + "xf32";
    auto checkWindow = [&](const std::string &filter, const std::string &y,
                           const std::string &attributes) {
      checkConvolution(KernelKind::window, "2x15x17x" + type, filter, y + type,
                       "channels_last, groups = " + count +
                           " : i64, filters = " + count + " : i64, " +
                           attributes);
    };
    checkWindow(count + "x3x3x1xf32", "2x15x17x",
                makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
    checkWindow("9x" + type, "2x15x17x",
                "packed_filter, " + makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
    checkWindow("25x" + type, "2x8x9x",
                "packed_filter, " + makeWindow("5, 5", "2, 2", "2, 2", "1, 1"));
    checkWindow("9x" + type, "2x5x5x",
                "packed_filter, " + makeWindow("3, 3", "3, 4", "1, 2", "1, 2"));
  }
}

TEST_F(ConvolutionKernelTest, depthwiseConvolutions) {
  auto checkWindow = [&](const std::string &filter, const std::string &y,
                         const std::string &window) {
    checkConvolution(KernelKind::window, "2x6x15x37xf32", filter, y,
                     "groups = 6 : i64, " + window);
  };
  checkWindow("6x1x3x3xf32", "2x6x15x37xf32",
              "filters = 6 : i64, " +
                  makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
  checkWindow("6x1x5x5xf32", "2x6x8x19xf32",
              "filters = 6 : i64, " +
                  makeWindow("5, 5", "2, 2", "2, 2", "1, 1"));
  checkWindow("12x1x3x3xf32", "2x12x5x11xf32",
              "filters = 12 : i64, " +
                  makeWindow("3, 3", "3, 3", "0, 0", "1, 2"));
}

TEST_F(ConvolutionKernelTest, convolutionsOfNarrowFloats) {
  for (std::string type : {"f16", "bf16"})
    for (std::string stride : {"1", "3"}) {
      int64_t step = stride[0] - '0';
      std::string pixels =
          std::to_string(14 / step + 1) + "x" + std::to_string(16 / step + 1);
      std::string window =
          makeWindow("3, 3", stride + ", " + stride, "1, 1", "1, 1");
      // Patches are copied, or read where they lie.
      std::string channels = stride == "1" ? "6" : "32";
      std::string last = channels + "x" + type;
      checkConvolution(KernelKind::contraction, "1x15x17x" + last,
                       "9x3x3x" + last, "1x" + pixels + "x9x" + type,
                       "channels_last, filters = 9 : i64, groups = 1 : i64, " +
                           window);
      checkConvolution(KernelKind::window, "1x15x17x" + last, "9x" + last,
                       "1x" + pixels + "x" + last,
                       "packed_filter, channels_last, filters = " + channels +
                           " : i64, groups = " + channels + " : i64, " +
                           window);
      checkConvolution(KernelKind::window, "1x6x15x17x" + type,
                       "6x1x3x3x" + type, "1x6x" + pixels + "x" + type,
                       "filters = 6 : i64, groups = 6 : i64, " + window);
    }
}

TEST_F(ConvolutionKernelTest, gradientsOfFilters) {
  std::string same = makeWindow("3, 3", "1, 1", "1, 1", "1, 1");
  std::string strided = makeWindow("3, 2", "2, 3", "1, 0", "1, 1");
  // Whole panels of one tap, or patches cut short.
  checkGradient("2x9x8x64xf32", "2x9x8x20xf32", "20x3x3x64xf32", same);
  checkGradient("2x9x8x128xf32", "2x5x3x13xf32", "13x3x2x128xf32", strided);
  checkGradient("2x9x8x10xf32", "2x9x8x70xf32", "70x3x3x10xf32", same);
  checkGradient("2x9x8x3xf32", "2x5x3x6xf32", "6x3x2x3xf32", strided);
  checkGradient("1x9x9x64xf32", "1x5x5x6xf32", "6x3x3x64xf32",
                makeWindow("3, 3", "1, 1", "0, 0", "2, 2"));
  checkGradient("2x9x8x3xf32", "2x5x4x6xf32", "6x3x3x3xf32",
                makeWindow("3, 3", "1, 1", "0, 0", "2, 2"));
  // Several blocks of filters, at one block of k and at two.
  checkGradient("1x5x5x64xf32", "1x5x5x540xf32", "540x3x3x64xf32", same);
  checkGradient("1x21x20x4xf32", "1x21x20x540xf32", "540x3x3x4xf32", same);
  // Operands that are computed while they are packed.
  check(KernelKind::contraction,
        R"(
    !x = tensor<2x5x4x3xf32>
    !d = tensor<2x5x4x7xf32>
    func.func @f(%x: !x, %d: !d) -> tensor<7x3x3x3xf32> {
      %0 = graph.relu %x : (!x) -> !x
      %1 = graph.neg %d : (!d) -> !d
      %2 = graph.conv_filter_gradient %0, %1 {groups = 1 : i64, )" +
            same +
            R"(}
        : (!x, !d) -> tensor<7x3x3x3xf32>
      return %2 : tensor<7x3x3x3xf32>
    })",
        {}, 1e-5);
  // Many blocks of k, and one in f64.
  checkGradient("3x17x19x64xf32", "3x17x19x8xf32", "8x3x3x64xf32", same);
  checkGradient("2x5x64xf64", "2x5x7xf64", "7x5x64xf64",
                makeWindow("5", "1", "2", "1"));
}

TEST_F(ConvolutionKernelTest, gradientsOfFiltersOfNarrowGroups) {
  std::string same = makeWindow("3, 3", "1, 1", "1, 1", "1, 1");
  std::string strided = makeWindow("3, 2", "2, 3", "1, 0", "1, 1");
  // A part of a vector, several vectors and a part, several tasks.
  for (int64_t channels : {6, 101, 150}) {
    std::string count = std::to_string(channels);
    checkGradient("2x9x8x" + count + "xf32", "2x9x8x" + count + "xf32",
                  count + "x3x3x1xf32", same, channels);
    checkGradient("2x9x8x" + count + "xf32", "2x5x3x" + count + "xf32",
                  count + "x3x2x1xf32", strided, channels);
  }
  // Several channels of a group, and filters.
  checkGradient("2x7x9x10xf32", "2x7x9x20xf32", "20x3x3x2xf32", same, 5);
  checkGradient("2x7x9x44xf32", "2x7x9x44xf32", "44x3x3x4xf32", same, 11);
  checkGradient("2x7x9x9xf64", "2x7x9x12xf64", "12x3x3x3xf64", same, 3);
  // Windows of more taps than sums, wider than x, dilated, of other ranks.
  checkGradient("2x40x20xf32", "2x40x20xf32", "20x31x1xf32",
                makeWindow("31", "1", "15", "1"), 20);
  checkGradient("1x2x3x8xf32", "1x2x3x8xf32", "8x5x5x1xf32",
                makeWindow("5, 5", "1, 1", "2, 2", "1, 1"), 8);
  checkGradient("1x12x9x8xf32", "1x5x5x8xf32", "8x3x3x1xf32",
                makeWindow("3, 3", "2, 1", "1, 0", "2, 2"), 8);
  checkGradient("1x4x5x6x8xf32", "1x4x5x6x8xf32", "8x3x3x3x1xf32",
                makeWindow("3, 3, 3", "1, 1, 1", "1, 1, 1", "1, 1, 1"), 8);
  checkGradient("2x9x8x40xbf16", "2x9x8x40xbf16", "40x3x3x1xf32", same, 40);
  checkGradient("2x0x8x40xf32", "2x2x8x40xf32", "40x3x3x1xf32",
                makeWindow("3, 3", "1, 1", "2, 1", "1, 1"), 40);
}

/// Windows that slide over x with zeros between its elements.
TEST_F(ConvolutionKernelTest, dilatedInputs) {
  for (int64_t channels : {6, 101}) {
    std::string count = std::to_string(channels), type = count + "xf32";
    auto checkWindow = [&](const std::string &x, const std::string &filter,
                           const std::string &y, const std::string &window,
                           const std::string &dilations) {
      checkConvolution(KernelKind::window, x + type, filter + type, y + type,
                       "channels_last, packed_filter, groups = " + count +
                           " : i64, filters = " + count +
                           " : i64, input_dilations = array<i64: " + dilations +
                           ">, " + window);
    };
    checkWindow("2x8x9x", "9x", "2x15x17x",
                makeWindow("3, 3", "1, 1", "1, 1", "1, 1"), "2, 2");
    checkWindow("2x8x9x", "25x", "2x15x33x",
                makeWindow("5, 5", "1, 1", "2, 2", "1, 1"), "2, 4");
    // Taps fewer than the dilation: places that none meets.
    checkWindow("2x3x4x", "2x", "2x7x9x",
                makeWindow("1, 2", "1, 1", "0, 0", "1, 1"), "3, 3");
    checkWindow("2x3x4x", "6x", "2x2x11x",
                makeWindow("3, 2", "2, 1", "1, 1", "1, 1"), "1, 3");
    checkWindow("1x9x", "5x", "1x17x", makeWindow("5", "1", "2", "1"), "2");
  }
  checkConvolution(KernelKind::window, "2x4x5x10xf64", "20x3x3x2xf64",
                   "2x7x9x20xf64",
                   "channels_last, groups = 5 : i64, filters = 20 : i64, "
                   "input_dilations = array<i64: 2, 2>, " +
                       makeWindow("3, 3", "1, 1", "1, 1", "1, 1"));
}

/// Input channels of a group are multiplied as pairs, if they are even in
/// number.
TEST_F(ConvolutionKernelTest, groupsOfPairs) {
  auto checkGroups = [&](const std::string &x, const std::string &filter,
                         const std::string &y, int64_t filters, int64_t groups,
                         const std::string &window) {
    checkConvolution(
        KernelKind::window, x + "xbf16", filter + "xbf16", y + "xf32",
        "channels_last, packed_filter, filters = " + std::to_string(filters) +
            " : i64, groups = " + std::to_string(groups) + " : i64, " + window);
  };
  std::string three = makeWindow("3, 3", "1, 1", "1, 1", "1, 1");
  // Whole vectors of groups and a part of one; blocks of vectors.
  checkGroups("2x7x9x20", "36x20", "2x7x9x20", 20, 5, three);
  checkGroups("1x7x9x104", "72x104", "1x7x9x104", 104, 13, three);
  // More filters than inputs; steps; taps apart; an odd number of inputs.
  checkGroups("2x7x9x10", "18x20", "2x4x5x20", 20, 5,
              makeWindow("3, 3", "2, 2", "1, 1", "1, 1"));
  checkGroups("1x9x12x16", "36x16", "1x5x8x16", 16, 4,
              makeWindow("3, 3", "1, 1", "0, 0", "2, 2"));
  checkGroups("1x7x9x6", "27x8", "1x7x9x8", 8, 2, three);
  checkGroups("2x4x5x8", "36x8", "2x7x9x8", 8, 2,
              "input_dilations = array<i64: 2, 2>, " + three);
}

/// Neighbouring positions are multiplied as pairs, if they are even in number:
/// within rows, across their ends, and where patches are cut short.
TEST_F(ConvolutionKernelTest, gradientsOfFiltersInPairs) {
  std::string same = makeWindow("3, 3", "1, 1", "1, 1", "1, 1");
  std::string strided = makeWindow("3, 2", "2, 3", "1, 0", "1, 1");
  auto checkPairs = [&](const std::string &x, const std::string &gradient,
                        const std::string &y, const std::string &window) {
    checkGradient(x + "xbf16", gradient + "xbf16", y + "xf32", window);
  };
  checkPairs("2x9x8x64", "2x9x8x20", "20x3x3x64", same);
  checkPairs("2x9x7x64", "2x9x7x20", "20x3x3x64", same);
  checkPairs("2x1x1x64", "2x1x1x6", "6x3x3x64", same);
  checkPairs("2x9x8x128", "2x5x3x13", "13x3x2x128", strided);
  checkPairs("2x9x7x10", "2x9x7x70", "70x3x3x10", same);
  checkPairs("2x9x8x3", "2x5x3x6", "6x3x2x3", strided);
  checkPairs("2x17x19x64", "2x17x19x8", "8x3x3x64", same);
  checkPairs("2x16x14x3", "2x8x7x25", "25x7x7x3",
             makeWindow("7, 7", "2, 2", "3, 3", "1, 1"));
  // Odd ones are not.
  checkPairs("1x9x7x64", "1x9x7x20", "20x3x3x64", same);
}

TEST_F(ConvolutionKernelTest, gradientsOfFiltersOfComputedPairs) {
  check(KernelKind::contraction,
        R"(
    !x = tensor<2x5x4x3xf32>
    !d = tensor<2x5x4x7xf32>
    !nx = tensor<2x5x4x3xbf16>
    !nd = tensor<2x5x4x7xbf16>
    func.func @f(%x: !x, %d: !d) -> tensor<7x3x3x3xf32> {
      %0 = graph.cast %x : (!x) -> !nx
      %1 = graph.cast %d : (!d) -> !nd
      %2 = graph.conv_filter_gradient %0, %1 {groups = 1 : i64, )" +
            makeWindow("3, 3", "1, 1", "1, 1", "1, 1") +
            R"(}
        : (!nx, !nd) -> tensor<7x3x3x3xf32>
      return %2 : tensor<7x3x3x3xf32>
    })",
        {}, 1e-5);
}

TEST_F(ConvolutionKernelTest, pooling) {
  auto checkPool = [&](const std::string &x, const std::string &y,
                       const std::string &attributes,
                       std::vector<std::string> kinds = {"max", "average"}) {
    for (const std::string &kind : kinds)
      check(KernelKind::window,
            "!x = tensor<" + x + ">\n!y = tensor<" + y +
                ">\nfunc.func @f(%x: !x) -> !y {\n%0 = graph.pool <" + kind +
                "> %x {" + makeWindow("3, 3", "2, 2", "1, 1", "1, 1") +
                ", count_low = array<i64: 1, 1>, "
                "count_high = array<i64: 1, 1>" +
                attributes + "} : (!x) -> !y\nreturn %0 : !y\n}");
  };
  for (std::string flag : {"", ", count_padding"}) {
    checkPool("2x3x15x37xf32", "2x3x8x19xf32", flag);
    checkPool("2x15x37x21xf32", "2x8x19x21xf32", flag + ", channels_last");
  }
  checkPool("2x15x37x5xi8", "2x8x19x5xi8", ", channels_last", {"max"});
}

} // namespace
