// What libraries may be asked for: each rule met in its smallest form, and
// broken in one way at a time.

#include "tests/runtime/devices/libraries/Works.h"
#include "gtest/gtest.h"

#include <functional>
#include <set>

using namespace tcc::runtime;
using namespace tcc::tests;
using tcc::format::DType;
using tcc::format::StepKind;
using tcc::format::WorkKind;
using tcc::format::WorkKind::convolution;
using tcc::format::WorkKind::filter_gradient;
using tcc::format::WorkKind::product;

namespace {

using enum StepKind; // of which <cmath> has one, too: tanh
using Steps = std::vector<StepKind>;

constexpr int64_t kRows = 8, kColumns = 16, kDepth = 6;
constexpr DType kNarrow = DType::bf16;

/// Steps whose operand holds what gelu is of, and what one needs behind it.
const Steps kGelus[] = {{store, gelu_tanh}, {gelu_tanh_gradient}};
const Steps kSums[] = {{sum_lhs}, {sum_rhs}};

/// One matrix that meets what any step needs: both operands lie with their
/// depth outermost, the result in rows.
LibraryWork makeProduct(const Steps &steps = {}, DType factors = kNarrow,
                        DType result = kNarrow) {
  LibraryWork work{
      .lhs = makeMatrix(factors, 1, kRows, kDepth, /*byColumns=*/true),
      .rhs = makeMatrix(factors, 1, kDepth, kColumns),
      .result = makeMatrix(result, 1, kRows, kColumns)};
  work.steps = makeSteps(work, steps);
  return work;
}

/// A convolution with a window of 3 x 3, or the gradient of its filter.
LibraryWork makeConvolution(WorkKind kind, const Steps &steps = {},
                            DType factors = kNarrow, DType result = kNarrow) {
  LibraryWork work{.kind = kind,
                   .lhs = makeImage(factors, {2, 8, 5, 5}),
                   .rhs = makeImage(factors, {4, 8, 3, 3}),
                   .result = makeImage(factors, {2, 4, 5, 5}),
                   .tf32 = factors == DType::f32,
                   .window = {{1, 1}, {1, 1}, {1, 1}, {1, 1}}};
  if (kind == filter_gradient)
    std::swap(work.rhs, work.result);
  work.result.dtype = result;
  work.steps = makeSteps(work, steps);
  return work;
}

LibraryWork makeWork(WorkKind kind, const Steps &steps = {},
                     DType factors = kNarrow, DType result = kNarrow) {
  return kind == product ? makeProduct(steps, factors, result)
                         : makeConvolution(kind, steps, factors, result);
}

/// `work` with such a batch.
LibraryWork inBatch(LibraryWork work, int64_t batch) {
  for (StridedView *view : {&work.lhs, &work.rhs, &work.result})
    view->extents[0] = batch;
  for (LibraryStep &step : work.steps)
    if (step.operand.rank)
      step.operand.extents[0] = batch;
  return work;
}

/// `work`, a product, with a result in columns; so do operands of steps lie.
LibraryWork byColumns(LibraryWork work) {
  work.result =
      makeMatrix(work.result.dtype, 1, kRows, kColumns, /*byColumns=*/true);
  for (LibraryStep &step : work.steps)
    step = makeStep(work, step.kind);
  return work;
}

std::string name(const Steps &steps) {
  std::string text;
  for (StepKind step : steps)
    text += std::string(" ") + tcc::format::EnumNameStepKind(step);
  return text;
}

/// Whether a library may be asked for `work`, which is well-formed.
bool isAsked(const LibraryWork &work) {
  EXPECT_TRUE(isWellFormed(work));
  return isOfLibrary(work);
}

} // namespace

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

/// A store needs gelu behind it, all other steps may stand alone.
TEST(LibraryRules, KnowsSteps) {
  const std::pair<WorkKind, std::set<StepKind>> kKnown[] = {
      {product,
       {scale, add, bias, relu, gelu_tanh, gelu_tanh_gradient, sum_lhs,
        sum_rhs}},
      {convolution,
       {add, bias, relu, silu, sigmoid, StepKind::tanh, gelu, gelu_tanh}},
      {filter_gradient, {}}};
  for (const auto &[kind, steps] : kKnown) {
    EXPECT_TRUE(isAsked(makeWork(kind)));
    for (StepKind step : tcc::format::EnumValuesStepKind())
      EXPECT_EQ(isAsked(makeWork(kind, {step})), steps.contains(step))
          << EnumNameWorkKind(kind) << name({step});
  }
}

/// Of all pairs of steps, the same one twice included.
TEST(LibraryRules, KnowsTheOrderOfSteps) {
  using Pairs = std::set<std::pair<StepKind, StepKind>>;
  const std::pair<WorkKind, Pairs> kKnown[] = {{product,
                                                {{scale, add},
                                                 {scale, bias},
                                                 {scale, relu},
                                                 {scale, gelu_tanh},
                                                 {scale, gelu_tanh_gradient},
                                                 {add, bias},
                                                 {add, relu},
                                                 {add, gelu_tanh},
                                                 {add, sum_lhs},
                                                 {add, sum_rhs},
                                                 {bias, relu},
                                                 {bias, gelu_tanh},
                                                 {store, gelu_tanh}}},
                                               {convolution,
                                                {{add, bias},
                                                 {add, relu},
                                                 {bias, relu},
                                                 {add, silu},
                                                 {bias, silu},
                                                 {add, sigmoid},
                                                 {bias, sigmoid},
                                                 {add, StepKind::tanh},
                                                 {bias, StepKind::tanh},
                                                 {add, gelu},
                                                 {bias, gelu},
                                                 {add, gelu_tanh},
                                                 {bias, gelu_tanh}}},
                                               {filter_gradient, {}}};
  for (const auto &[kind, pairs] : kKnown)
    for (StepKind first : tcc::format::EnumValuesStepKind())
      for (StepKind second : tcc::format::EnumValuesStepKind())
        EXPECT_EQ(isAsked(makeWork(kind, {first, second})),
                  pairs.contains({first, second}))
            << EnumNameWorkKind(kind) << name({first, second});
}

TEST(LibraryRules, KnowsTheLongestSteps) {
  for (const Steps &steps : {Steps{scale, add, bias, relu},
                             Steps{scale, add, bias, store, gelu_tanh}})
    EXPECT_TRUE(isAsked(makeProduct(steps))) << name(steps);
  EXPECT_TRUE(isAsked(makeConvolution(convolution, {add, bias, relu})));
  for (const Steps &steps :
       {Steps{scale, add, bias, gelu_tanh, store},
        Steps{add, scale, bias, relu}, Steps{store, bias, gelu_tanh},
        Steps{scale, add, sum_rhs}, Steps{add, bias, sum_rhs}})
    EXPECT_FALSE(isAsked(makeProduct(steps))) << name(steps);
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

TEST(LibraryRules, KnowsTypes) {
  using Types = std::set<std::pair<DType, DType>>;
  Types convolved = {{DType::f16, DType::f16},
                     {DType::f16, DType::f32},
                     {DType::bf16, DType::bf16},
                     {DType::bf16, DType::f32},
                     {DType::f32, DType::f32}};
  Types multiplied = convolved;
  multiplied.insert({DType::f64, DType::f64});
  for (WorkKind kind : tcc::format::EnumValuesWorkKind())
    for (DType factors : tcc::format::EnumValuesDType())
      for (DType result : tcc::format::EnumValuesDType())
        EXPECT_EQ(isOfLibrary(makeWork(kind, {}, factors, result)),
                  (kind == product ? multiplied : convolved)
                      .contains({factors, result}))
            << EnumNameWorkKind(kind) << " " << EnumNameDType(factors) << " "
            << EnumNameDType(result);
}

/// cuDNN rounds f32 unasked, cuBLASLt where it may.
TEST(LibraryRules, ConvolvesF32InTf32Alone) {
  for (WorkKind kind : tcc::format::EnumValuesWorkKind())
    for (bool tf32 : {false, true}) {
      LibraryWork work = makeWork(kind, {}, DType::f32, DType::f32);
      work.tf32 = tf32;
      EXPECT_EQ(isAsked(work), kind == product || tf32)
          << EnumNameWorkKind(kind);
    }
}

TEST(LibraryRules, KnowsTypesOfSteps) {
  for (const Steps &steps : kGelus) {
    EXPECT_TRUE(isAsked(makeProduct(steps, DType::f16, DType::f16)));
    EXPECT_FALSE(isAsked(makeProduct(steps, DType::f16, DType::f32)));
    EXPECT_FALSE(isAsked(makeProduct(steps, DType::f32, DType::f32)));
  }
  for (const Steps &steps : kSums) {
    EXPECT_TRUE(isAsked(makeProduct(steps, DType::f16, DType::f16)));
    EXPECT_TRUE(isAsked(makeProduct(steps, DType::f16, DType::f32)));
    EXPECT_FALSE(isAsked(makeProduct(steps, DType::f32, DType::f32)));
    EXPECT_FALSE(isAsked(makeProduct(steps, DType::f64, DType::f64)));
  }
  for (StepKind step : {scale, add, bias, relu, gelu_tanh})
    EXPECT_TRUE(isAsked(makeProduct({step}, DType::f64, DType::f64)))
        << name({step});
}

//===----------------------------------------------------------------------===//
// Layouts
//===----------------------------------------------------------------------===//

TEST(LibraryRules, TakesABatchOrOneMatrix) {
  for (StepKind step : {scale, add, bias, relu, gelu_tanh})
    EXPECT_TRUE(isAsked(inBatch(makeProduct({step}), 2))) << name({step});
  for (const auto &list : {std::span(kGelus), std::span(kSums)})
    for (const Steps &steps : list) {
      EXPECT_TRUE(isAsked(inBatch(makeProduct(steps), 1))) << name(steps);
      EXPECT_FALSE(isAsked(inBatch(makeProduct(steps), 2))) << name(steps);
    }
}

TEST(LibraryRules, TakesRowsOrColumnsOfTheResult) {
  for (StepKind step : {scale, add, relu, gelu_tanh})
    EXPECT_TRUE(isAsked(byColumns(makeProduct({step})))) << name({step});
  EXPECT_FALSE(isAsked(byColumns(makeProduct({bias}))));
  for (const auto &list : {std::span(kGelus), std::span(kSums)})
    for (const Steps &steps : list)
      EXPECT_FALSE(isAsked(byColumns(makeProduct(steps)))) << name(steps);
}

TEST(LibraryRules, TakesVectorsOfWhatGeluIsOf) {
  for (const Steps &steps : kGelus) {
    LibraryWork work = makeProduct(steps);
    StridedView &operand = work.steps[0].operand;
    for (auto [padding, isTaken] : {std::pair(8, true), {4, false}}) {
      operand = makeMatrix(kNarrow, 1, kRows, kColumns, false, padding);
      EXPECT_EQ(isAsked(work), isTaken) << name(steps) << " + " << padding;
    }
    operand = work.result;
    for (auto [alignment, isTaken] :
         {std::pair(0u, true), {2u, false}, {8u, false}, {16u, true}}) {
      operand.alignment = alignment;
      EXPECT_EQ(isAsked(work), isTaken) << name(steps) << " @ " << alignment;
    }
  }
  LibraryWork other = makeProduct({add});
  other.steps[0].operand =
      makeMatrix(kNarrow, 1, kRows, kColumns, false, /*padding=*/4);
  other.steps[0].operand.alignment = 2;
  EXPECT_TRUE(isAsked(other));
}

/// From a row, or column, to the next are at least as many elements as it has.
TEST(LibraryRules, RefusesMatricesThatOverlap) {
  for (const Steps &steps :
       {Steps{add}, Steps{store, gelu_tanh}, Steps{gelu_tanh_gradient}}) {
    LibraryWork work = makeProduct(steps);
    EXPECT_TRUE(isAsked(work));
    work.steps[0].operand.strides[1] = 8;
    EXPECT_FALSE(isAsked(work)) << name(steps);
  }
  LibraryWork left = makeProduct(), right = makeProduct(),
              result = makeProduct();
  left.lhs.strides[2] = kRows - 1;
  right.rhs.strides[1] = kColumns - 1;
  result.result.strides[1] = kColumns - 1;
  EXPECT_FALSE(isAsked(left));
  EXPECT_FALSE(isAsked(right));
  EXPECT_FALSE(isAsked(result));
}

TEST(LibraryRules, RefusesMatricesWithGaps) {
  for (StridedView LibraryWork::*view :
       {&LibraryWork::lhs, &LibraryWork::rhs, &LibraryWork::result}) {
    LibraryWork work = makeProduct();
    (work.*view).strides = {0, 64, 2};
    EXPECT_FALSE(isAsked(work));
  }
}

/// All of a batch may have one operand in common.
TEST(LibraryRules, TakesOperandsThatAreShared) {
  LibraryWork work = inBatch(makeProduct(), 2);
  work.rhs.strides[0] = 0;
  EXPECT_TRUE(isAsked(work));
}

TEST(LibraryRules, TakesAddendsInTheOrderOfTheResult) {
  for (bool isResultByColumns : {false, true})
    for (bool isAddendByColumns : {false, true}) {
      LibraryWork work = makeProduct({add});
      if (isResultByColumns)
        work = byColumns(work);
      work.steps[0].operand =
          makeMatrix(kNarrow, 1, kRows, kColumns, isAddendByColumns);
      EXPECT_EQ(isAsked(work), isResultByColumns == isAddendByColumns);
    }
}

TEST(LibraryRules, SumsOperandsWithTheirDepthOutermost) {
  for (StepKind step : {sum_lhs, sum_rhs})
    for (bool isLhsByColumns : {false, true})
      for (bool isRhsByColumns : {false, true}) {
        LibraryWork work = makeProduct({step});
        work.lhs = makeMatrix(kNarrow, 1, kRows, kDepth, isLhsByColumns);
        work.rhs = makeMatrix(kNarrow, 1, kDepth, kColumns, isRhsByColumns);
        EXPECT_EQ(isAsked(work),
                  step == sum_lhs ? isLhsByColumns : !isRhsByColumns)
            << name({step}) << isLhsByColumns << isRhsByColumns;
      }
}

/// cuDNN says itself which layouts it has.
TEST(LibraryRules, TakesImagesOfAnyLayout) {
  LibraryWork work = makeConvolution(convolution, {add});
  work.lhs = makeImage(kNarrow, {2, 8, 5, 5}, /*channelsLast=*/false);
  work.steps[0].operand.strides = {400, 100, 20, 4};
  EXPECT_TRUE(isAsked(work));
}

//===----------------------------------------------------------------------===//
// Sizes that are not known
//===----------------------------------------------------------------------===//

namespace {

/// Makes sizes of a product unknown.
using Forget = std::function<void(LibraryWork &)>;

void forgetRows(LibraryWork &work) {
  work.lhs.extents[1] = work.result.extents[1] = kUnknownSize;
  for (LibraryStep &step : work.steps)
    step.operand.extents[1] = kUnknownSize;
}
void forgetColumns(LibraryWork &work) {
  work.rhs.extents[2] = work.result.extents[2] = kUnknownSize;
  for (LibraryStep &step : work.steps)
    step.operand.extents[2] = kUnknownSize;
}
void forgetDepth(LibraryWork &work) {
  work.lhs.extents[2] = work.rhs.extents[1] = kUnknownSize;
}
/// How far rows, or columns, are apart.
void forgetLeading(LibraryWork &work) {
  work.lhs.strides[2] = work.rhs.strides[1] = work.result.strides[1] =
      kUnknownSize;
  for (LibraryStep &step : work.steps)
    if (traitsOf(step.kind).form == OperandForm::elements)
      step.operand.strides[1] = kUnknownSize;
}

const std::pair<const char *, Forget> kForgotten[] = {
    {"rows", forgetRows},
    {"columns", forgetColumns},
    {"depth", forgetDepth},
    {"leading dimensions", forgetLeading},
    {"alignments",
     [](LibraryWork &work) {
       for (LibraryStep &step : work.steps)
         step.operand.alignment = 0;
     }},
    {"all of these", [](LibraryWork &work) {
       forgetRows(work);
       forgetColumns(work);
       forgetDepth(work);
       forgetLeading(work);
     }}};

} // namespace

TEST(LibraryRules, TakesWhatIsNotKnown) {
  for (const Steps &steps :
       {Steps{scale, add, bias, relu}, Steps{store, gelu_tanh},
        Steps{scale, gelu_tanh_gradient}, Steps{add, sum_lhs},
        Steps{add, sum_rhs}})
    for (const auto &[what, forget] : kForgotten) {
      LibraryWork work = makeProduct(steps);
      forget(work);
      EXPECT_TRUE(isAsked(work)) << what << " of" << name(steps);
    }
  LibraryWork batch = inBatch(makeProduct({add, bias}), kUnknownSize);
  for (StridedView *view : {&batch.lhs, &batch.rhs, &batch.result})
    view->strides[0] = kUnknownSize;
  EXPECT_TRUE(isAsked(batch));
}

TEST(LibraryRules, TakesImagesThatAreNotKnown) {
  for (WorkKind kind : {convolution, filter_gradient}) {
    LibraryWork work = makeConvolution(kind);
    for (StridedView *view : {&work.lhs, &work.rhs, &work.result})
      for (uint32_t axis = 0; axis < view->rank; ++axis)
        view->extents[axis] = view->strides[axis] = kUnknownSize;
    if (kind == convolution)
      work.steps = makeSteps(work, {add, bias, relu});
    EXPECT_TRUE(isAsked(work)) << EnumNameWorkKind(kind);
  }
}

/// What is known of a work decides all the same.
TEST(LibraryRules, RefusesDespiteWhatIsNotKnown) {
  LibraryWork leading = makeProduct({store, gelu_tanh});
  leading.steps[0].operand.strides[1] = kColumns + 4;
  forgetColumns(leading);
  EXPECT_FALSE(isAsked(leading));
  LibraryWork overlapping = makeProduct();
  overlapping.result.strides[1] = kColumns - 1;
  forgetDepth(overlapping);
  EXPECT_FALSE(isAsked(overlapping));
  LibraryWork backwards = makeProduct();
  backwards.lhs.strides[2] = -kRows;
  forgetColumns(backwards);
  EXPECT_FALSE(isAsked(backwards));
}
