// Launches that a library does instead of their kernels.

#include "tests/runtime/Fixture.h"

#include <cstdlib>
#include <fstream>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::SizeOp;
using format::StepKind;
using testing::HasSubstr;

namespace {

/// A 4 x 4 matrix.
std::unique_ptr<format::OperandT> matrix(uint32_t buffer, int64_t offset = 0) {
  return makeOperand(buffer, DType::f32, {offset, 1, 4, 4, 0, 4, 1});
}
/// The first row of it, for each row.
std::unique_ptr<format::OperandT> firstRow(uint32_t buffer) {
  return makeOperand(buffer, DType::f32, {0, 1, 4, 4, 0, 0, 1});
}

/// The kernel adds one; the library squares the 4 x 4 matrix.
ProgramBuilder squareProgram() {
  ProgramBuilder builder = addOneProgram();
  auto work = std::make_unique<format::LibraryWorkT>();
  work->lhs = matrix(0);
  work->rhs = matrix(0);
  work->result = matrix(1);
  builder.tables.kernels[0]->library = std::move(work);
  builder.entry().workspace_bytes = 1024;
  return builder;
}

format::LibraryWorkT &workOf(ProgramBuilder &builder) {
  return *builder.tables.kernels[0]->library;
}

/// Runs with the library that TCC_CUDA_LIB asks for.
class LibraryCallsTest : public testing::Test {
protected:
  void useLibrary() { setenv("TCC_CUDA_LIB", "simulated", /*overwrite=*/1); }
  void TearDown() override { unsetenv("TCC_CUDA_LIB"); }

  Status run(ProgramBuilder &builder, int times = 1) {
    context = unwrap(Context::create(loadEmulated(builder)));
    std::vector<float> x(16);
    std::iota(x.begin(), x.end(), 0.0f);
    Status status = bind(*context, 0, x, {4, 4});
    for (int i = 0; i < times && status.ok(); ++i)
      status = context->run();
    return status;
  }
  std::vector<float> result() { return floatsOf(context->output(0)); }

  std::unique_ptr<Context> context;
};

} // namespace

/// The first time, captured and replayed.
TEST_F(LibraryCallsTest, GivesProductsToTheLibrary) {
  useLibrary();
  ProgramBuilder builder = squareProgram();
  ASSERT_THAT(run(builder, 4), succeeds());
  EXPECT_EQ(result(),
            (std::vector<float>{56, 62, 68, 74, 152, 174, 196, 218, 248, 286,
                                324, 362, 344, 398, 452, 506}));
}

/// relu(x[i, j] + x[0, j] - (x x)[i, j] / 32)
TEST_F(LibraryCallsTest, GivesStepsToTheLibrary) {
  useLibrary();
  ProgramBuilder builder = squareProgram();
  addStep(workOf(builder), StepKind::scale).factor = -1.0 / 32;
  addStep(workOf(builder), StepKind::add, matrix(0));
  addStep(workOf(builder), StepKind::bias, firstRow(0));
  addStep(workOf(builder), StepKind::relu);
  ASSERT_THAT(run(builder, 4), succeeds());
  std::vector<float> expected;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      float sum = 0;
      for (int k = 0; k < 4; ++k)
        sum += float((4 * i + k) * (4 * k + j));
      expected.push_back(std::max(-sum / 32 + float(4 * i + j) + j, 0.0f));
    }
  EXPECT_EQ(result(), expected);
}

TEST_F(LibraryCallsTest, LaunchesKernelsWithoutOne) {
  ProgramBuilder builder = squareProgram();
  ASSERT_THAT(run(builder), succeeds());
  EXPECT_EQ(result()[15], 16.0f);
}

/// Lane 1 launches as well: both have a workspace that begins where one may.
TEST_F(LibraryCallsTest, HasAWorkspaceForEachLaneThatLaunches) {
  useLibrary();
  ProgramBuilder builder = squareProgram();
  uint32_t value = builder.scratch(16);
  std::vector<Expr> sizes;
  sizes.push_back(constant(4));
  sizes.push_back(constant(4));
  builder.orderLanes(0, 1);
  builder.onLane(1);
  builder.launch("add", {value, value, value}, std::move(sizes), constant(1));
  builder.orderLanes(1, 0);
  builder.entry().workspace_bytes = 1000;
  ASSERT_THAT(run(builder, 4), succeeds());
  EXPECT_EQ(context->planned().workspace, 2 * 1024u);
}

TEST_F(LibraryCallsTest, RefusesWorkspacesThatOverflow) {
  ProgramBuilder builder = squareProgram();
  builder.entry().workspace_bytes = UINT64_MAX;
  EXPECT_THAT(Context::create(loadEmulated(builder)).takeStatus(),
              failsWith(Code::OutOfMemory, "18446744073709551615 bytes is too "
                                           "large"));
}

TEST_F(LibraryCallsTest, LaunchesTheKernelOfWhatTheLibraryLacks) {
  useLibrary();
  ProgramBuilder builder = squareProgram();
  // Rows overlap, which is not known before x has a shape.
  workOf(builder).lhs->place[5] =
      code({{SizeOp::slot, 0}, {SizeOp::constant, 2}, {SizeOp::sub, 0}});
  ASSERT_THAT(run(builder), succeeds());
  EXPECT_EQ(result()[15], 16.0f);
}

TEST_F(LibraryCallsTest, RefusesMatricesThatLeaveTheirBuffer) {
  useLibrary();
  ProgramBuilder builder = squareProgram();
  workOf(builder).lhs = matrix(0, /*offset=*/17);
  EXPECT_THAT(run(builder),
              failsWith(Code::BadData, "does not fit its buffer"));
}

/// Of more sizes than there are plans for, each twice.
TEST_F(LibraryCallsTest, DropsPlansOfManySizes) {
  constexpr int64_t kSizes = 4100;
  useLibrary();
  ProgramBuilder builder = squareProgram();
  for (auto *rows : {&workOf(builder).lhs, &workOf(builder).result})
    (*rows)->place[2] = slot(0); // rows of x, by its first 4 x 4
  builder.tables.symbols[0]->min = 4;
  builder.tables.symbols[0]->max = kSizes;
  for (auto &buffer : builder.entry().buffers)
    buffer->max_bytes = kSizes * 16;
  context = unwrap(Context::create(loadEmulated(builder)));
  std::vector<float> x(kSizes * 4, 1.0f);
  for (int64_t rows = 4; rows <= kSizes; ++rows) {
    ASSERT_THAT(bind(*context, 0, x, {rows, 4}), succeeds());
    for (int again = 0; again < 2; ++again)
      ASSERT_THAT(context->run(), succeeds());
  }
  EXPECT_EQ(result().back(), 4.0f);
}

TEST_F(LibraryCallsTest, LaunchesTheKernelOfWhatIsWalkedBackwards) {
  useLibrary();
  ProgramBuilder builder = squareProgram();
  auto &place = workOf(builder).lhs->place;
  place[0] = constant(12);
  place[5] = code({{SizeOp::constant, 0}, {SizeOp::slot, 0}, {SizeOp::sub, 0}});
  ASSERT_THAT(run(builder), succeeds());
  EXPECT_EQ(result()[15], 16.0f);
}

/// A library would read it while it writes the result.
TEST_F(LibraryCallsTest, LaunchesTheKernelOfABiasWhereTheResultLies) {
  useLibrary();
  ProgramBuilder builder = squareProgram();
  addStep(workOf(builder), StepKind::bias, firstRow(1));
  ASSERT_THAT(run(builder), succeeds());
  EXPECT_EQ(result()[15], 16.0f);
}

TEST_F(LibraryCallsTest, LaunchesTheKernelOfNewerKinds) {
  useLibrary();
  ProgramBuilder step = squareProgram(), work = squareProgram();
  addStep(workOf(step), StepKind(200), matrix(0));
  workOf(work).kind = format::WorkKind(200);
  for (ProgramBuilder *builder : {&step, &work}) {
    ASSERT_THAT(run(*builder, 2), succeeds());
    EXPECT_EQ(result()[15], 16.0f);
  }
}

//===----------------------------------------------------------------------===//
// Tuning
//===----------------------------------------------------------------------===//

namespace {

class TuningTest : public LibraryCallsTest {
protected:
  TuningTest() { useLibrary(); }

  /// Runs twice while ways are measured.
  std::vector<Measurement> measure() {
    ProgramBuilder builder = squareProgram();
    context = unwrap(Context::create(loadEmulated(builder)));
    EXPECT_THAT(bind(*context, 0, ones, {4, 4}), succeeds());
    Stream &stream = context->walker().getStream();
    std::vector<Measurement> measured;
    EXPECT_THAT(stream.tune(&measured), succeeds());
    for (int i = 0; i < 2; ++i)
      EXPECT_THAT(context->run(), succeeds());
    EXPECT_THAT(stream.tune(nullptr), succeeds());
    return measured;
  }

  /// What the kernel, or the library, makes of ones where this is known.
  float runWith(const Tunings &known) {
    TemporaryFolder folder;
    EXPECT_THAT(known.write(folder / "known"), succeeds());
    ProgramBuilder builder = squareProgram();
    context = unwrap(Context::create(loadEmulated(builder, folder / "known")));
    EXPECT_THAT(bind(*context, 0, ones, {4, 4}), succeeds());
    EXPECT_THAT(context->run(), succeeds());
    return result()[15];
  }

  std::vector<float> ones = std::vector<float>(16, 1.0f); ///< what is bound
};

} // namespace

/// By the simulator's clock.
TEST_F(TuningTest, MeasuresTheKernelAndEachWayOnce) {
  std::vector<Measurement> measured = measure();
  ASSERT_EQ(measured.size(), 3u);
  double expected[] = {100, 20, 10};
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(measured[i].work, measured[0].work);
    EXPECT_EQ(measured[i].tuning.way, i - 1);
    EXPECT_NEAR(measured[i].tuning.microseconds, expected[i], 1e-3);
  }
  EXPECT_THAT(measured[0].work, HasSubstr("emulated, "));
  EXPECT_THAT(measured[0].work,
              HasSubstr("workspace 1024: product: f32[1x4x4:0x4x1]@"));
}

TEST_F(TuningTest, LeavesRunsAsTheyWere) {
  measure();
  for (int i = 0; i < 3; ++i) // one is captured, one replayed
    ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(result()[15], 4.0f);
}

TEST_F(TuningTest, TakesTheWayThatIsKnown) {
  std::string work = measure()[0].work;
  Tunings known;
  EXPECT_EQ(runWith(known), 4.0f);
  known.set(work, {Tuning::kKernel, 1});
  EXPECT_EQ(runWith(known), 2.0f);
  known.set(work, {1, 1});
  EXPECT_EQ(runWith(known), 4.0f);
  // The library has two.
  known.set(work, {2, 1});
  EXPECT_EQ(runWith(known), 2.0f);
}

TEST_F(TuningTest, ReadsWhatItWrote) {
  TemporaryFolder folder;
  Tunings known;
  known.set("a work", {3, 12.5});
  known.set("another: 1 + 2", {Tuning::kKernel, 0});
  ASSERT_THAT(known.write(folder / "known"), succeeds());
  Tunings read = unwrap(Tunings::read(folder / "known"));
  EXPECT_EQ(read.size(), 2u);
  EXPECT_EQ(read.find("a work")->way, 3);
  EXPECT_EQ(read.find("a work")->microseconds, 12.5);
  EXPECT_EQ(read.find("another: 1 + 2")->way, Tuning::kKernel);
  EXPECT_EQ(read.find("a"), nullptr);
}

TEST_F(TuningTest, TakesTheLastOfJoinedFiles) {
  TemporaryFolder folder;
  std::ofstream(folder / "joined") << "# one\n0\t2\tx\n\n# two\n1\t1.5\tx";
  EXPECT_EQ(unwrap(Tunings::read(folder / "joined")).find("x")->way, 1);
}

TEST_F(TuningTest, RefusesOtherLines) {
  TemporaryFolder folder;
  for (const char *line :
       {"1\t2", "1\t2\t", "-1\t2\tx", "one\t2\tx", "1\tnan\tx", "1\t-2\tx",
        "99999999999\t2\tx", "1 2 x"}) {
    std::ofstream(folder / "bad") << "0\t2\ty\n" << line << "\n";
    EXPECT_THAT(Tunings::read(folder / "bad").takeStatus(),
                failsWith(Code::BadData, "bad:2: '"))
        << line;
  }
}
