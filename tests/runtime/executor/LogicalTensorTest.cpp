#include "runtime/executor/Variables.h"

#include "tests/runtime/Fixture.h"

using namespace tcc::runtime;
using namespace tcc::tests;
using testing::ElementsAre;

namespace {

/// Three tensors of 6, 5 and 0 elements one after the other in variable 0, of
/// which each of three ranks has 4; one of 3 elements that all ranks have.
constexpr int64_t kMatrix[] = {2, 3}, kVector[] = {5}, kNone[] = {0, 7},
                  kWhole[] = {3};
constexpr LogicalTensor kTensors[] = {
    {"m/a", "a", DType::f32, kMatrix, 6, 0, 0, true},
    {"m/b", "b", DType::f32, kVector, 5, 0, 6, true},
    {"m/c", "c", DType::f32, kNone, 0, 0, 11, true},
    {"w", "", DType::f32, kWhole, 3, 1},
};

std::vector<Piece> cut(int rank) {
  return cutPieces(kTensors, rank, [](size_t i) { return i ? 3 : 4; });
}

} // namespace

/// Parts begin and end within tensors; the padding, the last element of rank 2,
/// is of none.
TEST(LogicalTensorTest, CutsTensorsIntoPieces) {
  const Piece whole = {3, 0, 3, 0}, none = {2, 0, 0, 0};
  EXPECT_THAT(cut(0), ElementsAre(Piece{0, 0, 4, 0}, none, whole));
  EXPECT_THAT(cut(1),
              ElementsAre(Piece{0, 4, 2, 0}, Piece{1, 0, 2, 2}, none, whole));
  EXPECT_THAT(cut(2), ElementsAre(Piece{1, 2, 3, 0}, none, whole));
}

/// Rows that follow each other are one piece.
TEST(LogicalTensorTest, CutsPartsIntoRows) {
  const int64_t shape[] = {3, 4, 5};
  auto rowsOf = [&](std::vector<int64_t> extents, std::vector<int64_t> offset) {
    LogicalTensor tensor = {"t", "", DType::f32, shape, 60, 0};
    tensor.extents = extents;
    tensor.offset = offset;
    return cutPieces({&tensor, 1}, /*rank=*/1, [](size_t) { return 0; });
  };
  EXPECT_THAT(rowsOf({2, 2, 3}, {1, 2, 2}),
              ElementsAre(Piece{0, 32, 3, 0}, Piece{0, 37, 3, 3},
                          Piece{0, 52, 3, 6}, Piece{0, 57, 3, 9}));
  EXPECT_THAT(rowsOf({2, 4, 5}, {1, 0, 0}), ElementsAre(Piece{0, 20, 40, 0}));
  EXPECT_THAT(rowsOf({2, 0, 5}, {1, 0, 0}), ElementsAre());
}

/// Without a division each variable is a tensor, and a piece of every rank.
TEST(LogicalTensorTest, HasOneTensorInEachVariable) {
  ProgramBuilder builder = addOneProgram();
  uint32_t slot = builder.variable("exp_avg/w", DType::f32, {2, 3},
                                   tcc::format::VariableKind::slot);
  builder.tables.variables[slot]->parameter = "w";
  builder.field(tcc::format::StepField::iteration);
  TemporaryFolder folder;
  builder.write(folder / "two.tcc");
  auto executable = loadExecutable(folder / "two.tcc");
  auto variables = unwrap(Variables::allocate(
      executable->program(), executable->device(), systemAllocator()));
  std::span<const LogicalTensor> tensors = variables.tensors();
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].name, "exp_avg/w");
  EXPECT_EQ(tensors[0].parameter, "w");
  EXPECT_THAT(tensors[0].shape, ElementsAre(2, 3));
  EXPECT_EQ(tensors[1].count, 1u);
  EXPECT_EQ(tensors[1].variable, 1u);
  EXPECT_FALSE(variables.isAnyDivided());
  for (int rank : {0, 5})
    EXPECT_THAT(variables.pieces(rank),
                ElementsAre(Piece{0, 0, 6, 0}, Piece{1, 0, 1, 0}));
}
