// Which descriptions of a library's work mean anything.

#include "tests/runtime/devices/libraries/Works.h"
#include "gtest/gtest.h"

#include <functional>

using namespace tcc::runtime;
using namespace tcc::tests;
using tcc::format::DType;
using tcc::format::StepKind;
using tcc::format::WorkKind;

namespace {

/// One way to spoil a description, and how it is called.
struct Spoiled {
  const char *name;
  std::function<void(LibraryWork &)> spoil;
};

/// Of steps with operands of each form.
LibraryWork makeProduct() {
  LibraryWork work{.lhs = makeMatrix(DType::bf16, 1, 8, 6),
                   .rhs = makeMatrix(DType::bf16, 1, 6, 16),
                   .result = makeMatrix(DType::f32, 1, 8, 16)};
  work.steps = makeSteps(
      work, {StepKind::relu, StepKind::add, StepKind::bias, StepKind::sum_lhs});
  return work;
}

LibraryWork makeConvolution() {
  LibraryWork work{
      .kind = WorkKind::convolution,
      .lhs = makeImage(DType::f16, {2, 8, 5, 5}),
      .rhs = makeImage(DType::f16, {4, 2, 3, 3}),
      .result = makeImage(DType::f16, {2, 4, 5, 5}),
      .window = {{1, 1}, {1, 1}, {1, 1}, {1, 1}},
  };
  work.steps = makeSteps(work, {StepKind::add, StepKind::bias});
  return work;
}

LibraryWork makeGradient() {
  LibraryWork work = makeConvolution();
  std::swap(work.rhs, work.result);
  work.kind = WorkKind::filter_gradient;
  work.steps.clear();
  return work;
}

/// All operands have so many axes, the window those that are spatial.
void setRank(LibraryWork &work, uint32_t rank) {
  work.steps.clear();
  for (StridedView *view : {&work.lhs, &work.rhs, &work.result})
    view->rank = rank;
  bool hasWindow = work.kind != WorkKind::product;
  std::vector<int64_t> list(hasWindow ? rank - 2 : 0, 1);
  work.window = {list, list, list, list};
}

const Spoiled kSpoiledProducts[] = {
    {"rank of lhs", [](auto &work) { work.lhs.rank = 2; }},
    {"rank of rhs", [](auto &work) { work.rhs.rank = 2; }},
    {"rank of result", [](auto &work) { work.result.rank = 2; }},
    {"two axes", [](auto &work) { setRank(work, 2); }},
    {"four axes", [](auto &work) { setRank(work, 4); }},
    {"batch of lhs", [](auto &work) { work.lhs.extents[0] = 2; }},
    {"batch of rhs", [](auto &work) { work.rhs.extents[0] = 2; }},
    {"rows of lhs", [](auto &work) { work.lhs.extents[1] = 9; }},
    {"columns of rhs", [](auto &work) { work.rhs.extents[2] = 17; }},
    {"depth of lhs", [](auto &work) { work.lhs.extents[2] = 5; }},
    {"depth of rhs", [](auto &work) { work.rhs.extents[1] = 7; }},
    {"rows of an addend",
     [](auto &work) { work.steps[1].operand.extents[1] = 1; }},
    {"columns of a bias",
     [](auto &work) { work.steps[2].operand.extents[2] = 17; }},
    {"types that differ", [](auto &work) { work.rhs.dtype = DType::f16; }},
    {"integers",
     [](auto &work) { work.lhs.dtype = work.rhs.dtype = DType::i32; }},
    {"no types",
     [](auto &work) { work.lhs.dtype = work.rhs.dtype = DType(99); }},
    {"an integer result",
     [](auto &work) { work.result.dtype = DType::i32, work.steps.clear(); }},
    {"tf32 of bf16", [](auto &work) { work.tf32 = true; }},
    {"type of an addend",
     [](auto &work) { work.steps[1].operand.dtype = DType::bf16; }},
    {"type of a bias",
     [](auto &work) { work.steps[2].operand.dtype = DType::bf16; }},
    {"a window", [](auto &work) { work.window.strides = {1}; }},
    {"a bias of one element",
     [](auto &work) { work.steps[2].operand.strides[2] = 0; }},
    {"a bias with gaps",
     [](auto &work) { work.steps[2].operand.strides[2] = 2; }},
    {"a bias along rows",
     [](auto &work) { work.steps[2].operand.strides = {0, 1, 0}; }},
    {"a bias of elements",
     [](auto &work) { work.steps[2].operand.strides = {0, 16, 1}; }},
    {"sums along columns",
     [](auto &work) { work.steps[3].operand.strides = {0, 0, 1}; }},
    {"no addend", [](auto &work) { work.steps[1].operand = {}; }},
    {"no bias", [](auto &work) { work.steps[2].operand = {}; }},
    {"an operand of relu",
     [](auto &work) { work.steps[0].operand = work.result; }},
    {"a newer step", [](auto &work) { work.steps[0].kind = StepKind(200); }},
    {"newer work", [](auto &work) { work.kind = WorkKind(200); }},
};

const Spoiled kSpoiledConvolutions[] = {
    {"rank of filters", [](auto &work) { work.rhs.rank = 3; }},
    {"two axes", [](auto &work) { setRank(work, 2); }},
    {"six axes", [](auto &work) { setRank(work, 6); }},
    {"images", [](auto &work) { work.lhs.extents[0] = 3; }},
    {"filters", [](auto &work) { work.rhs.extents[0] = 5; }},
    {"padding before", [](auto &work) { work.window.padLow.pop_back(); }},
    {"padding behind", [](auto &work) { work.window.padHigh.push_back(1); }},
    {"strides", [](auto &work) { work.window.strides.clear(); }},
    {"dilations", [](auto &work) { work.window.dilations.pop_back(); }},
    {"no window", [](auto &work) { work.window = {}; }},
    {"tf32 of f16", [](auto &work) { work.tf32 = true; }},
    {"a bias along the last axis",
     [](auto &work) { work.steps[1].operand.strides = {0, 0, 0, 1}; }},
    {"a bias of elements",
     [](auto &work) { work.steps[1].operand = work.result; }},
};

const Spoiled kSpoiledGradients[] = {
    {"images", [](auto &work) { work.lhs.extents[0] = 3; }},
    {"filters", [](auto &work) { work.rhs.extents[1] = 5; }},
    {"window", [](auto &work) { work.window.strides = {1}; }},
};

void expectRefusals(const LibraryWork &work, std::span<const Spoiled> spoils) {
  EXPECT_TRUE(isWellFormed(work));
  for (const Spoiled &spoiled : spoils) {
    LibraryWork copy = work;
    spoiled.spoil(copy);
    EXPECT_FALSE(isWellFormed(copy)) << spoiled.name;
  }
}

} // namespace

TEST(LibraryWork, IsWellFormed) {
  expectRefusals(makeProduct(), kSpoiledProducts);
  expectRefusals(makeConvolution(), kSpoiledConvolutions);
  expectRefusals(makeGradient(), kSpoiledGradients);
}

TEST(LibraryWork, HasUpToThreeSpatialAxes) {
  for (uint32_t rank : {3u, 4u, 5u}) {
    LibraryWork work = makeConvolution();
    setRank(work, rank);
    EXPECT_TRUE(isWellFormed(work)) << rank;
  }
}

/// The place of a step says nothing of whether it means something.
TEST(LibraryWork, HasStepsInAnyOrder) {
  LibraryWork work = makeProduct();
  std::ranges::reverse(work.steps);
  EXPECT_TRUE(isWellFormed(work));
}

/// Extents that are not known may be those of the others.
TEST(LibraryWork, HasExtentsThatAreNotKnown) {
  for (LibraryWork work : {makeProduct(), makeConvolution(), makeGradient()})
    for (StridedView LibraryWork::*view :
         {&LibraryWork::lhs, &LibraryWork::rhs, &LibraryWork::result}) {
      (work.*view).extents.fill(kUnknownSize);
      EXPECT_TRUE(isWellFormed(work));
    }
}

TEST(LibraryWork, FindsVectors) {
  StridedView view = makeMatrix(DType::f32, 1, 1, 8);
  EXPECT_TRUE(isVectorAlong(view, 2));
  view.strides = {5, 7, 1}; // of axes with one element
  EXPECT_TRUE(isVectorAlong(view, 2));
  EXPECT_FALSE(isVectorAlong(view, 1));
  view.extents[1] = kUnknownSize;
  EXPECT_FALSE(isVectorAlong(view, 2));
  view.strides[1] = 0;
  EXPECT_TRUE(isVectorAlong(view, 2));
}

TEST(LibraryWork, FindsSteps) {
  LibraryWork work = makeProduct();
  EXPECT_EQ(findStep(work, StepKind::bias), &work.steps[2]);
  EXPECT_EQ(findStep(work, StepKind::scale), nullptr);
}
