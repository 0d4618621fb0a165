// Kernels whose work a library may do are described as one takes it.

#include "runtime/package/Verify.h"
#include "tests/runtime/Fixture.h"

#include <functional>
#include <limits>
#include <random>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::LibraryWorkT;
using format::StepKind;
using format::WorkKind;

static Status verify(ProgramBuilder &builder) {
  return verifyProgram(builder.program(), {});
}

namespace {

/// One way to spoil a description.
using Spoil = std::function<void(LibraryWorkT &)>;

/// A product of 4 x 4 matrices of f32.
LibraryWorkT makeProduct() {
  LibraryWorkT work;
  work.lhs = makeOperand(0, DType::f32, {0, 1, 4, 4, 0, 4, 1});
  work.rhs = makeOperand(0, DType::f32, {0, 1, 4, 4, 0, 4, 1});
  work.result = makeOperand(1, DType::f32, {0, 1, 4, 4, 0, 4, 1});
  return work;
}

/// A convolution of f16 along one spatial axis.
LibraryWorkT makeConvolution() {
  LibraryWorkT work;
  work.kind = WorkKind::convolution;
  work.lhs = makeOperand(0, DType::f16, {0, 2, 3, 5, 15, 1, 3});
  work.rhs = makeOperand(0, DType::f16, {0, 4, 3, 3, 9, 1, 3});
  work.result = makeOperand(1, DType::f16, {0, 2, 4, 5, 20, 1, 4});
  work.window = std::make_unique<format::WindowT>();
  for (auto *list : {&work.window->pad_low, &work.window->pad_high,
                     &work.window->strides, &work.window->dilations})
    list->push_back(1);
  return work;
}

/// f32 in the place of f16.
void widen(LibraryWorkT &work) {
  for (auto *operand : {&work.lhs, &work.rhs, &work.result})
    (*operand)->dtype = DType::f32;
}

/// A program whose kernel may be done as `work`.
ProgramBuilder makeProgram(LibraryWorkT work) {
  ProgramBuilder builder = addOneProgram();
  builder.tables.kernels[0]->library =
      std::make_unique<LibraryWorkT>(std::move(work));
  return builder;
}

const Spoil kSpoiledProducts[] = {
    [](auto &work) { work.lhs->place.pop_back(); },
    [](auto &work) { work.lhs->place.resize(5); },
    [](auto &work) { work.lhs->place.clear(); },
    [](auto &work) {
      for (int i = 0; i < 6; ++i)
        work.lhs->place.push_back(constant(1));
    },
    [](auto &work) { work.lhs->dtype = DType::i32; },
    [](auto &work) { work.lhs->dtype = DType(99); },
    [](auto &work) { work.rhs->dtype = DType::f64; },
    [](auto &work) { work.result->place[1] = code({}); },
    [](auto &work) { work.lhs->place[3] = constant(3); },
    [](auto &work) {
      for (auto *operand : {&work.lhs, &work.rhs, &work.result})
        (*operand)->dtype = DType::f64;
      work.tf32 = true;
    },
    [](auto &work) {
      work.window =
          std::make_unique<format::WindowT>(*makeConvolution().window);
    },
    [](auto &work) { addStep(work, StepKind::add); },
    [](auto &work) {
      addStep(work, StepKind::add,
              makeOperand(0, DType::f16, {0, 1, 4, 4, 0, 4, 1}));
    },
    [](auto &work) {
      addStep(work, StepKind::relu,
              makeOperand(0, DType::f32, {0, 1, 4, 4, 0, 4, 1}));
    },
    // An operand without axes is one.
    [](auto &work) {
      addStep(work, StepKind::relu, makeOperand(0, DType(99), {0}));
    },
    // A bias with one element for all.
    [](auto &work) {
      addStep(work, StepKind::bias,
              makeOperand(0, DType::f32, {0, 1, 4, 4, 0, 0, 0}));
    },
    [](auto &work) {
      addStep(work, StepKind::scale);
      work.steps.back()->factor = std::numeric_limits<double>::quiet_NaN();
    },
};

/// Well-formed, but no library does them.
const Spoil kUnusualProducts[] = {
    // Rows with gaps between their elements.
    [](auto &work) { work.lhs->place[6] = constant(2); },
    [](auto &work) {
      addStep(work, StepKind::relu);
      addStep(work, StepKind::scale);
    },
};

const Spoil kSpoiledConvolutions[] = {
    [](auto &work) { work.lhs->place.pop_back(); },
    [](auto &work) { work.window->pad_high.clear(); },
    [](auto &work) { work.window->strides.resize(4); },
    [](auto &work) { work.window.reset(); },
    [](auto &work) { work.tf32 = true; },
};

const Spoil kUnusualConvolutions[] = {
    widen,
    [](auto &work) { addStep(work, StepKind::gelu_tanh); },
    [](auto &work) {
      work.kind = WorkKind::filter_gradient;
      std::swap(work.rhs, work.result);
      addStep(work, StepKind::relu);
    },
};

void expectRefusals(const std::function<LibraryWorkT()> &make,
                    std::span<const Spoil> spoils) {
  for (size_t i = 0; i < spoils.size(); ++i) {
    LibraryWorkT work = make();
    spoils[i](work);
    ProgramBuilder builder = makeProgram(std::move(work));
    EXPECT_THAT(verify(builder),
                failsWith(Code::BadData, "kernel 'add_one' describes no work "
                                         "of a library"))
        << i;
  }
}

} // namespace

TEST(VerifyLibrary, AcceptsWork) {
  LibraryWorkT exact = makeConvolution(), gradient = makeConvolution(),
               unknown = makeProduct();
  widen(exact);
  exact.tf32 = true;
  gradient.kind = WorkKind::filter_gradient;
  std::swap(gradient.rhs, gradient.result);
  for (auto *rows : {&unknown.lhs, &unknown.result})
    (*rows)->place[2] = slot(0);
  addStep(unknown, StepKind::add,
          makeOperand(0, DType::f32, {0, 1, 4, 4, 0, 4, 1}));
  for (const LibraryWorkT &work :
       {makeProduct(), makeConvolution(), exact, gradient, unknown}) {
    ProgramBuilder builder = makeProgram(work);
    EXPECT_THAT(verify(builder), succeeds());
  }
}

TEST(VerifyLibrary, RefusesMalformedWork) {
  expectRefusals(makeProduct, kSpoiledProducts);
  expectRefusals(makeConvolution, kSpoiledConvolutions);
}

/// What a library can do may change: the kernel does it.
TEST(VerifyLibrary, AcceptsWhatNoLibraryDoes) {
  auto expectAll = [](auto make, std::span<const Spoil> changes) {
    for (const Spoil &change : changes) {
      LibraryWorkT work = make();
      change(work);
      ProgramBuilder builder = makeProgram(std::move(work));
      EXPECT_THAT(verify(builder), succeeds());
    }
  };
  expectAll(makeProduct, kUnusualProducts);
  expectAll(makeConvolution, kUnusualConvolutions);
}

TEST(VerifyLibrary, RefusesBuffersThatALaunchLacks) {
  LibraryWorkT result = makeProduct(), filter = makeConvolution(),
               step = makeProduct();
  result.result->buffer = 2;
  filter.rhs->buffer = 2;
  addStep(step, StepKind::add,
          makeOperand(2, DType::f32, {0, 1, 4, 4, 0, 4, 1}));
  for (const LibraryWorkT &work : {result, filter, step}) {
    ProgramBuilder builder = makeProgram(work);
    EXPECT_THAT(verify(builder),
                failsWith(Code::BadData, "lacks a buffer that a library uses"));
  }
}

/// Sizes may be computed: each entry has slots of its own.
TEST(VerifyLibrary, RefusesSizesThatALaunchLacks) {
  LibraryWorkT work = makeProduct();
  work.result->place[1] = slot(1);
  ProgramBuilder builder = makeProgram(work);
  EXPECT_THAT(verify(builder),
              failsWith(Code::BadData, "lacks a size that a library uses"));
}

/// What a newer format says of a kernel is not understood: the kernel does it.
TEST(VerifyLibrary, IgnoresNewerKinds) {
  LibraryWorkT step = makeProduct(), work = makeProduct();
  addStep(step, StepKind::relu);
  addStep(step, StepKind(200));
  work.kind = WorkKind(200);
  work.lhs->place.pop_back();
  for (const LibraryWorkT &newer : {step, work}) {
    ProgramBuilder builder = makeProgram(newer);
    EXPECT_THAT(verify(builder), succeeds());
  }
}

TEST(VerifyLibrary, SurvivesBitFlips) {
  LibraryWorkT product = makeProduct();
  addStep(product, StepKind::scale).factor = 0.5;
  addStep(product, StepKind::bias,
          makeOperand(0, DType::f32, {0, 1, 4, 4, 0, 0, 1}));
  std::mt19937 random(4);
  for (const LibraryWorkT &work : {product, makeConvolution()}) {
    std::vector<std::byte> bytes = makeProgram(work).program();
    for (int i = 0; i < 5000; ++i) {
      std::vector<std::byte> flipped = bytes;
      flipped[random() % bytes.size()] ^= std::byte(1 << random() % 8);
      Status status = verifyProgram(flipped, {});
      EXPECT_TRUE(status.ok() || status.code() == Code::BadData);
    }
  }
}
