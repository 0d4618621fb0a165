// Convolutions through cuDNN's descriptors, which the simulated library reads
// back and computes from.

#include "runtime/devices/libraries/Cudnn.h"
#include "tests/runtime/devices/libraries/LibraryFixture.h"
#include "tests/runtime/devices/libraries/Works.h"

#include <array>
#include <cmath>

using namespace tcc::runtime;
using namespace tcc::runtime::cuda;
using namespace tcc::tests;
using tcc::format::StepKind;
using tcc::format::WorkKind;
using testing::HasSubstr;

namespace {

using Sizes = std::vector<int64_t>;

/// What a convolution is, without its layouts.
struct Shape {
  Sizes x, filter;
  Sizes before, after, strides, dilations;
};

struct Variant {
  bool channelsLast = true, hasAddend = false, hasBias = false, hasRelu = false;
  int64_t padding = 0;                   ///< elements between images
  bool isWide = false;                   ///< f32 results, addends and biases
  std::optional<StepKind> function = {}; ///< but relu
};

double apply(StepKind function, double x) {
  switch (function) {
  case StepKind::silu:
    return x / (1 + std::exp(-x));
  case StepKind::sigmoid:
    return 1 / (1 + std::exp(-x));
  case StepKind::tanh:
    return std::tanh(x);
  case StepKind::gelu:
    return x * std::erfc(-x * M_SQRT1_2) / 2;
  case StepKind::gelu_tanh:
    return x / (1 + std::exp(-2 * std::sqrt(2 * M_1_PI) *
                             (x + 0.044715 * std::pow(x, 3))));
  default:
    return NAN;
  }
}

/// A tensor with its elements.
struct TestImage {
  StridedView view;
  std::vector<double> elements;

  TestImage(const Sizes &extents, Variant variant, DType dtype, uint64_t seed)
      : view(makeImage(dtype, extents, variant.channelsLast, variant.padding)),
        elements(makeElements(view.strides[0] * extents[0], seed)) {}
  int64_t indexOf(int64_t n, int64_t c, const Sizes &place) const {
    int64_t index = n * view.strides[0] + c * view.strides[1];
    for (size_t i = 0; i < place.size(); ++i)
      index += place[i] * view.strides[i + 2];
    return index;
  }
  double at(int64_t n, int64_t c, const Sizes &place) const {
    return elements[indexOf(n, c, place)];
  }
};

/// All places within extents from their third axis on, in order.
std::vector<Sizes> placesOf(const Sizes &extents) {
  std::vector<Sizes> places{Sizes()};
  for (size_t axis = 2; axis < extents.size(); ++axis) {
    std::vector<Sizes> longer;
    for (const Sizes &place : places)
      for (int64_t i = 0; i < extents[axis]; ++i) {
        longer.push_back(place);
        longer.back().push_back(i);
      }
    places = std::move(longer);
  }
  return places;
}

Sizes resultOf(const Shape &shape) {
  Sizes result{shape.x[0], shape.filter[0]};
  for (size_t i = 0; i < shape.strides.size(); ++i)
    result.push_back((shape.x[i + 2] + shape.before[i] + shape.after[i] -
                      (shape.filter[i + 2] - 1) * shape.dilations[i] - 1) /
                         shape.strides[i] +
                     1);
  return result;
}

/// The sum of a convolution's definition.
double convolveAt(const Shape &shape, const TestImage &x,
                  const TestImage &filter, int64_t n, int64_t k,
                  const Sizes &place) {
  int64_t depth = shape.filter[1];
  int64_t group = k / (shape.filter[0] / (shape.x[1] / depth));
  double sum = 0;
  for (const Sizes &tap : placesOf(shape.filter)) {
    Sizes from;
    bool isInside = true;
    for (size_t i = 0; i < tap.size(); ++i) {
      from.push_back(place[i] * shape.strides[i] + tap[i] * shape.dilations[i] -
                     shape.before[i]);
      isInside = isInside && from[i] >= 0 && from[i] < shape.x[i + 2];
    }
    for (int64_t c = 0; isInside && c < depth; ++c)
      sum += x.at(n, group * depth + c, from) * filter.at(k, c, tap);
  }
  return sum;
}

class CudnnLibraryTest : public LibraryFixture {
protected:
  static constexpr size_t kWorkspace = 4096;

  void SetUp() override {
    LibraryFixture::SetUp();
    auto find = reinterpret_cast<const Cudnn *(*)()>(
        findSymbol(TCC_EMULATED_PLUGIN, "tcc_emulated_cudnn"));
    open({nullptr, /*hasProducts=*/false, /*hasConvolutions=*/true,
          /*isSimulated=*/true, nullptr, find()});
    workspace = upload(std::vector<char>(kWorkspace));
  }
  LibraryWork describe(const Shape &shape, Variant variant, DType dtype) {
    auto make = [&](const Sizes &extents, DType dtype) {
      return makeImage(dtype, extents, variant.channelsLast, variant.padding);
    };
    LibraryWork work{
        .kind = WorkKind::convolution,
        .lhs = make(shape.x, dtype),
        .rhs = make(shape.filter, dtype),
        .result = make(resultOf(shape), variant.isWide ? DType::f32 : dtype),
        .tf32 = dtype == DType::f32,
        .window = {shape.before, shape.after, shape.strides, shape.dilations}};
    if (variant.hasAddend)
      work.steps.push_back(makeStep(work, StepKind::add));
    if (variant.hasBias)
      work.steps.push_back(makeStep(work, StepKind::bias));
    if (variant.hasRelu)
      work.steps.push_back(makeStep(work, StepKind::relu));
    if (variant.function)
      work.steps.push_back(makeStep(work, *variant.function));
    return work;
  }
  /// Of the filter of a convolution that is described as `forward`.
  static LibraryWork deriveFilter(LibraryWork forward) {
    std::swap(forward.rhs, forward.result);
    forward.kind = WorkKind::filter_gradient;
    return forward;
  }
  void *place(const TestImage &image) {
    return upload(encode(image.elements, image.view.dtype));
  }
  std::unique_ptr<LibraryPlan> plan(const LibraryWork &work,
                                    size_t bytes = kWorkspace) {
    auto plan = library->plan(work, workspace, bytes);
    EXPECT_TRUE(plan.ok()) << plan.takeStatus().message();
    return plan.ok() ? std::move(*plan) : nullptr;
  }
  void check(const Shape &shape, Variant variant, DType dtype,
             bool hasNan = false);
  void checkFilterGradient(const Shape &shape, Variant variant, DType dtype);

  void *workspace = nullptr;
};

void CudnnLibraryTest::check(const Shape &shape, Variant variant, DType dtype,
                             bool hasNan) {
  TestImage x(shape.x, variant, dtype, 1);
  TestImage filter(shape.filter, variant, dtype, 2);
  DType stored = variant.isWide ? DType::f32 : dtype;
  TestImage addend(resultOf(shape), variant, stored, 3);
  TestImage result(resultOf(shape), variant, stored, 4);
  TestImage bias({1, shape.filter[0], 1}, {}, stored, 5);
  if (hasNan)
    x.elements[0] = NAN;
  LibraryWork work = describe(shape, variant, dtype);
  ASSERT_TRUE(isWellFormed(work));
  auto computation = plan(work);
  ASSERT_NE(computation, nullptr);
  LibraryOperands operands{place(x), place(filter), place(result), {}};
  for (const LibraryStep &step : work.steps)
    operands.steps.push_back(step.kind == StepKind::add    ? place(addend)
                             : step.kind == StepKind::bias ? place(bias)
                                                           : nullptr);
  Status status = computation->enqueue(operands, stream);
  ASSERT_TRUE(status.ok()) << status.message();
  std::vector<char> bytes =
      download(operands.result, result.elements.size() * bytesOf(stored));
  double halfUlp = dtype == DType::bf16 ? 0x1p-8 : 0x1p-11;
  for (int64_t n = 0; n < shape.x[0]; ++n)
    for (int64_t k = 0; k < shape.filter[0]; ++k)
      for (const Sizes &at : placesOf(resultOf(shape))) {
        double expected = convolveAt(shape, x, filter, n, k, at) +
                          (variant.hasAddend ? addend.at(n, k, at) : 0) +
                          (variant.hasBias ? bias.at(0, k, {0}) : 0);
        if (variant.hasRelu && expected < 0)
          expected = 0;
        if (variant.function)
          expected = apply(*variant.function, expected);
        double found = decode(bytes, result.indexOf(n, k, at), stored);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(found)) << n << ", " << k;
          continue;
        }
        // f16 has no more bits below 2^-14.
        double bound = std::max(std::abs(expected) * halfUlp, 0x1p-25);
        ASSERT_NEAR(found, expected, bound) << n << ", " << k;
      }
}

const Shape kPlain{{2, 8, 6, 5}, {4, 8, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}};
const std::pair<const char *, Shape> kShapes[] = {
    {"1-d", {{2, 4, 9}, {6, 4, 3}, {1}, {1}, {2}, {1}}},
    {"3-d",
     {{2, 4, 3, 4, 5},
      {6, 4, 2, 3, 2},
      {1, 1, 0},
      {0, 1, 1},
      {1, 2, 1},
      {1, 1, 2}}},
    {"asymmetric padding",
     {{1, 4, 5, 7}, {2, 4, 3, 2}, {0, 2}, {3, 1}, {1, 1}, {1, 1}}},
    {"strides and dilations",
     {{1, 4, 9, 11}, {2, 4, 3, 2}, {2, 1}, {2, 1}, {2, 3}, {2, 4}}},
    {"groups", {{2, 6, 4, 4}, {9, 2, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"depthwise", {{2, 6, 4, 4}, {6, 1, 3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}}},
    {"one element",
     {{1, 1, 1, 1}, {1, 1, 1, 1}, {0, 0}, {0, 0}, {1, 1}, {1, 1}}}};

void CudnnLibraryTest::checkFilterGradient(const Shape &shape, Variant variant,
                                           DType dtype) {
  TestImage x(shape.x, variant, dtype, 1);
  TestImage gradient(resultOf(shape), variant, dtype, 2);
  TestImage result(shape.filter, variant, dtype, 3);
  LibraryWork work = deriveFilter(describe(shape, variant, dtype));
  ASSERT_TRUE(isWellFormed(work));
  auto computation = plan(work);
  ASSERT_NE(computation, nullptr);
  LibraryOperands operands{place(x), place(gradient), place(result), {}};
  ASSERT_TRUE(computation->enqueue(operands, stream).ok());
  std::vector<char> bytes =
      download(operands.result, result.elements.size() * bytesOf(dtype));
  // The gradient of a sum of results, each times its own gradient: by a filter
  // that is 1 at one element.
  TestImage filter(shape.filter, variant, dtype, 0);
  for (int64_t k = 0; k < shape.filter[0]; ++k)
    for (int64_t c = 0; c < shape.filter[1]; ++c)
      for (const Sizes &tap : placesOf(shape.filter)) {
        filter.elements.assign(filter.elements.size(), 0);
        filter.elements[filter.indexOf(k, c, tap)] = 1;
        double expected = 0;
        for (int64_t n = 0; n < shape.x[0]; ++n)
          for (const Sizes &at : placesOf(resultOf(shape)))
            expected +=
                convolveAt(shape, x, filter, n, k, at) * gradient.at(n, k, at);
        double found = decode(bytes, result.indexOf(k, c, tap), dtype);
        ASSERT_NEAR(found, expected, std::abs(expected) * 0x1p-8)
            << k << ", " << c;
      }
}

} // namespace

TEST_F(CudnnLibraryTest, ComputesAllEpilogues) {
  for (int bits = 0; bits < 64; ++bits) {
    SCOPED_TRACE(testing::Message() << "variant " << bits);
    Variant variant{bool(bits & 1), bool(bits & 2),    bool(bits & 4),
                    bool(bits & 8), bits & 1 ? 16 : 0, bool(bits & 32)};
    check(kPlain, variant, bits & 16 ? DType::f16 : DType::bf16);
    if (HasFatalFailure())
      return;
  }
}

TEST_F(CudnnLibraryTest, ComputesAllWindows) {
  for (const auto &[name, shape] : kShapes)
    for (bool channelsLast : {false, true}) {
      SCOPED_TRACE(testing::Message() << name << ", " << channelsLast);
      check(shape, {channelsLast, true, true, true}, DType::bf16);
      if (HasFatalFailure())
        return;
    }
}

TEST_F(CudnnLibraryTest, ComputesGradientsOfFilters) {
  for (const auto &[name, shape] : kShapes)
    for (bool channelsLast : {false, true}) {
      SCOPED_TRACE(testing::Message() << name << ", " << channelsLast);
      checkFilterGradient(shape, {channelsLast}, DType::bf16);
      if (HasFatalFailure())
        return;
    }
}

/// Small multiples of 1/8 are exact in tf32.
TEST_F(CudnnLibraryTest, ComputesInTf32) {
  for (bool channelsLast : {false, true})
    check(kPlain, {channelsLast, true, true, true}, DType::f32);
}

TEST_F(CudnnLibraryTest, ComputesFunctions) {
  for (StepKind function : {StepKind::silu, StepKind::sigmoid, StepKind::tanh,
                            StepKind::gelu, StepKind::gelu_tanh})
    for (DType dtype : {DType::f16, DType::bf16}) {
      SCOPED_TRACE(EnumNameStepKind(function));
      check(kPlain, {.hasAddend = true, .hasBias = true, .function = function},
            dtype);
    }
}

TEST_F(CudnnLibraryTest, KeepsNans) {
  check(kPlain, {true, true, true, true}, DType::f16,
        /*hasNan=*/true);
}

/// One plan, other places each time, captured and replayed.
TEST_F(CudnnLibraryTest, IsCaptured) {
  auto computation = plan(describe(kPlain, {}, DType::f16));
  ASSERT_NE(computation, nullptr);
  TestImage ones(kPlain.x, {}, DType::f16, 1);
  ones.elements.assign(ones.elements.size(), 1);
  TestImage filter(kPlain.filter, {}, DType::f16, 2);
  filter.elements.assign(filter.elements.size(), 1);
  std::vector<char> zeros(2 * 4 * 6 * 5 * 2);
  void *x = place(ones), *weights = place(filter);
  std::array<void *, 2> results{upload(zeros), upload(zeros)};
  driver->streamBeginCapture(stream, kCaptureThreadLocal);
  for (void *result : results)
    ASSERT_TRUE(computation->enqueue({x, weights, result, {}}, stream).ok());
  GraphHandle graph;
  driver->streamEndCapture(stream, &graph);
  EXPECT_EQ(decode(download(results[1], 2), 0, DType::f16), 0);
  GraphExecHandle exec;
  driver->graphInstantiateWithFlags(&exec, graph, 0);
  driver->graphLaunch(exec, stream);
  for (void *result : results) // a corner sees 2 x 2 of the window
    EXPECT_EQ(decode(download(result, 2), 0, DType::f16), 2 * 2 * 8);
  driver->graphExecDestroy(exec);
  driver->graphDestroy(graph);
}

/// The kernel has to do it.
TEST_F(CudnnLibraryTest, LeavesWhatItLacks) {
  LibraryWork plain = describe(kPlain, {}, DType::bf16);
  LibraryWork exact = describe(kPlain, {}, DType::f32);
  exact.tf32 = false;
  EXPECT_EQ(plan(exact), nullptr) << "f32";
  EXPECT_EQ(plan(plain, 1023), nullptr) << "workspace";
  LibraryWork scaled = plain;
  scaled.steps = makeSteps(scaled, {StepKind::scale});
  EXPECT_EQ(plan(scaled), nullptr) << "a factor";
  LibraryWork broadcast = plain;
  broadcast.lhs.strides[0] = 0;
  EXPECT_EQ(plan(broadcast), nullptr) << "strides";
  LibraryWork empty = plain;
  empty.lhs.extents[0] = empty.result.extents[0] = 0;
  EXPECT_EQ(plan(empty), nullptr) << "no images";
  LibraryWork mixed = plain;
  mixed.result.dtype = DType::f16;
  EXPECT_EQ(plan(mixed), nullptr) << "dtypes";
  LibraryWork gradient = deriveFilter(plain);
  EXPECT_NE(plan(gradient), nullptr);
  gradient.steps = makeSteps(gradient, {StepKind::bias});
  EXPECT_EQ(plan(gradient), nullptr) << "a gradient with a bias";
}

TEST_F(CudnnLibraryTest, HoldsToTheAlignmentItWasToldOf) {
  auto computation = plan(describe(kPlain, {}, DType::f16));
  ASSERT_NE(computation, nullptr);
  auto *place = static_cast<char *>(upload(std::vector<char>(8192)));
  LibraryOperands operands{place + 2, place, place + 4096, {}};
  ASSERT_TRUE(computation->enqueue(operands, stream).ok());
  EXPECT_NE(driver->streamSynchronize(stream), kSuccess);
}

TEST_F(CudnnLibraryTest, NotesWhatIsMissing) {
  EXPECT_EQ(library->note(), "");
  EXPECT_EQ(library->name(), "cuDNN 0");
  open({nullptr, /*hasProducts=*/false, /*hasConvolutions=*/true,
        /*isSimulated=*/true});
  EXPECT_THAT(std::string(library->note()),
              HasSubstr("convolutions run without cuDNN, more slowly: "));
  EXPECT_EQ(plan(describe(kPlain, {}, DType::f16)), nullptr);
}

/// Those of this machine, with a device or without: each is there, or missed.
TEST_F(CudnnLibraryTest, OpensWhatTheMachineHas) {
  open({nullptr, /*hasProducts=*/true, /*hasConvolutions=*/true});
  std::string name(library->name()), note(library->note());
  for (const char *library : {"cuBLASLt", "cuDNN"}) {
    bool isOpen = name.find(library) != std::string::npos;
    bool isMissed =
        note.find(std::string("run without ") + library) != std::string::npos;
    EXPECT_NE(isOpen, isMissed) << name << "; " << note;
  }
}
