#include "runtime/executor/Walker.h"
#include "runtime/base/Alignment.h"

#include "runtime/devices/cpu/CpuDevice.h"
#include "tests/runtime/Fixture.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::SizeOp;
using format::StorageClass;

template <typename... Exprs> static std::vector<Expr> sizes(Exprs... exprs) {
  std::vector<Expr> list;
  (list.push_back(std::move(exprs)), ...);
  return list;
}

/// One float in and out, with scratch for the condition of blocks.
struct ScalarProgram {
  ScalarProgram() {
    in = builder.buffer(StorageClass::input, builder.input("x", DType::f32, {}),
                        4);
    out = builder.buffer(StorageClass::output,
                         builder.output("y", DType::f32, {}), 4);
  }
  format::LaunchT &addOne(uint32_t from, uint32_t to) {
    return builder.launch("add_one", {from, to},
                          sizes(constant(1), constant(1)), constant(1));
  }
  void copy(uint32_t from, uint32_t to, int64_t bytes) {
    format::CopyT copy;
    copy.from = from;
    copy.to = to;
    copy.bytes = constant(bytes);
    builder.command(std::move(copy));
  }
  float run(float value) {
    auto context = makeContext(builder);
    std::vector<float> x = {value};
    EXPECT_THAT(bind(*context, 0, x, {}), succeeds());
    EXPECT_THAT(context->run(), succeeds());
    return floatsOf(context->output(0))[0];
  }
  Status runStatus(float value) {
    auto context = makeContext(builder);
    std::vector<float> x = {value};
    EXPECT_THAT(bind(*context, 0, x, {}), succeeds());
    return context->run();
  }

  ProgramBuilder builder;
  uint32_t in, out;
};

TEST(Walker, LaunchesInOrder) {
  ScalarProgram program;
  uint32_t middle = program.builder.scratch(4);
  program.addOne(program.in, middle);
  program.addOne(middle, program.out);
  EXPECT_EQ(program.run(5), 7);
}

TEST(Walker, IfTakesOneBranch) {
  ScalarProgram program;
  ProgramBuilder &builder = program.builder;
  uint32_t condition = builder.scratch(1);
  builder.launch("is_below", {program.in, condition}, sizes(constant(10)),
                 constant(1));
  format::IfT &added = builder.branch(condition);
  builder.pushBlock(*added.then_block);
  program.addOne(program.in, program.out);
  builder.popBlock();
  builder.pushBlock(*added.else_block);
  program.copy(program.in, program.out, 4);
  EXPECT_EQ(program.run(5), 6);
  EXPECT_EQ(program.run(50), 50);
}

/// y = x, then y += 1 while y < bound, at most `trips` times.
static ScalarProgram countingLoop(int64_t bound, Expr trips, int64_t maxTrips) {
  ScalarProgram program;
  ProgramBuilder &builder = program.builder;
  builder.entry().slot_count = 1;
  uint32_t condition = builder.scratch(1);
  program.copy(program.in, program.out, 4);
  auto test = [&] {
    builder.launch("is_below", {program.out, condition}, sizes(constant(bound)),
                   constant(1));
  };
  test();
  format::LoopT loop;
  loop.iteration = 0;
  loop.trips = std::move(trips);
  loop.condition = condition;
  loop.max_trips = maxTrips;
  loop.node = "while_node";
  loop.body = std::make_unique<format::BlockT>();
  format::LoopT &added = builder.command(std::move(loop));
  builder.pushBlock(*added.body);
  program.addOne(program.out, program.out);
  test();
  builder.popBlock();
  return program;
}

TEST(Walker, LoopStopsAtItsTripCount) {
  EXPECT_EQ(countingLoop(1000, constant(3), 100).run(0), 3);
  EXPECT_EQ(countingLoop(1000, constant(0), 100).run(0), 0);
}

TEST(Walker, LoopStopsAtItsCondition) {
  EXPECT_EQ(countingLoop(7, nullptr, 100).run(2), 7);
  EXPECT_EQ(countingLoop(7, constant(50), 100).run(9), 9);
}

TEST(Walker, LoopRunsAtMostItsBound) {
  EXPECT_EQ(countingLoop(5, nullptr, 5).run(0), 5);
  EXPECT_THAT(
      countingLoop(6, nullptr, 5).runStatus(0),
      failsWith(Code::Usage, "'while_node': the loop runs more than 5"));
}

TEST(Walker, ViewsMoveWithTheIteration) {
  // y[i] = x[i] + 1, one element per iteration.
  ProgramBuilder builder;
  builder.entry().slot_count = 1;
  uint32_t in =
      builder.buffer(StorageClass::input,
                     builder.input("x", DType::f32, sizes(constant(4))), 16);
  uint32_t out =
      builder.buffer(StorageClass::output,
                     builder.output("y", DType::f32, sizes(constant(4))), 16);
  auto offset = [] {
    return code({{SizeOp::slot, 0}, {SizeOp::constant, 4}, {SizeOp::mul, 0}});
  };
  uint32_t from = builder.view(in, offset(), 4);
  uint32_t to = builder.view(out, offset(), 4);
  format::LoopT loop;
  loop.trips = constant(4);
  loop.max_trips = 4;
  loop.body = std::make_unique<format::BlockT>();
  format::LoopT &added = builder.command(std::move(loop));
  builder.pushBlock(*added.body);
  builder.launch("add_one", {from, to}, sizes(constant(1), constant(1)),
                 constant(1));
  auto context = makeContext(builder);
  std::vector<float> x = {1, 2, 3, 4};
  ASSERT_THAT(bind(*context, 0, x, {4}), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(floatsOf(context->output(0)), (std::vector<float>{2, 3, 4, 5}));
}

TEST(Walker, SizesComeFromTheData) {
  // y has as many elements as x has positive ones.
  ProgramBuilder builder;
  builder.entry().slot_count = 1;
  uint32_t in =
      builder.buffer(StorageClass::input,
                     builder.input("x", DType::f32, sizes(constant(4))), 16);
  uint32_t out =
      builder.buffer(StorageClass::output,
                     builder.output("y", DType::f32, sizes(slot(0))), 16);
  uint32_t count = builder.scratch(8);
  builder.launch("count_positive", {in, count}, sizes(constant(4)),
                 constant(1));
  format::ReadSizeT read;
  read.buffer = count;
  read.dtype = DType::i64;
  read.max = 3;
  read.node = "nonzero";
  builder.command(std::move(read));
  builder.launch("add_one", {in, out}, sizes(slot(0), constant(1)), slot(0));
  auto context = makeContext(builder);
  std::vector<float> x = {1, 2, -1, -1};
  ASSERT_THAT(bind(*context, 0, x, {4}), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(floatsOf(context->output(0)), (std::vector<float>{2, 3}));
  x = {1, 1, 1, 1};
  EXPECT_THAT(
      context->run(),
      failsWith(Code::Usage, "'nonzero': a size is 4, compiled for 0..3"));
}

TEST(Walker, RunsEndWhereACheckFails) {
  ProgramBuilder builder;
  builder.entry().slot_count = 1;
  uint32_t flag = builder.buffer(
      StorageClass::input, builder.input("x", DType::boolean, sizes()), 1);
  format::ReadSizeT read;
  read.buffer = flag;
  read.dtype = DType::boolean;
  read.min = read.max = 1;
  read.node = "split";
  read.what = "its parts are too long";
  builder.command(std::move(read));
  auto context = makeContext(builder);
  bool isMet = true;
  ASSERT_THAT(context->bindInput(0, {&isMet, DType::boolean, {}}), succeeds());
  EXPECT_THAT(context->run(), succeeds());
  isMet = false;
  EXPECT_THAT(context->run(),
              failsWith(Code::Usage, "'split': its parts are too long"));
}

// In the order of commands; views are of their base, branches may not be taken.
TEST(Walker, WorkingSetIsWhatEachWalkUses) {
  ScalarProgram program;
  ProgramBuilder &builder = program.builder;
  uint32_t condition = builder.scratch(1), last = builder.scratch(8);
  uint32_t first = builder.scratch(16), branched = builder.scratch(4);
  program.addOne(program.in, builder.view(first, constant(4), 4));
  builder.launch("is_below", {first, condition}, sizes(constant(10)),
                 constant(1));
  program.copy(first, last, 4);
  format::IfT &added = builder.branch(condition);
  builder.pushBlock(*added.then_block);
  program.addOne(first, branched);
  builder.popBlock();
  program.addOne(last, program.out);
  auto used = makeContext(builder)->walker().workingSet();
  ASSERT_EQ(used.size(), 3u);
  EXPECT_EQ(used[0].size(), 16u);
  EXPECT_EQ(used[1].size(), 1u);
  EXPECT_EQ(used[2].size(), 8u);
  EXPECT_EQ(used[1].data() + 2 * kTensorAlignment, used[0].data());
}

TEST(Walker, WorkingSetIsUnknownWhereSizesVary) {
  ScalarProgram program;
  program.addOne(program.in, program.builder.scratch(4));
  EXPECT_EQ(makeContext(program.builder)->walker().workingSet().size(), 1u);
  program.builder.entry().slot_count = 1;
  EXPECT_TRUE(makeContext(program.builder)->walker().workingSet().empty());
}

TEST(Walker, NamesTheNodeOfABadIndex) {
  ProgramBuilder builder;
  uint32_t table =
      builder.buffer(StorageClass::input,
                     builder.input("t", DType::f32, sizes(constant(3))), 12);
  uint32_t index =
      builder.buffer(StorageClass::input,
                     builder.input("i", DType::i64, sizes(constant(9))), 72);
  uint32_t out =
      builder.buffer(StorageClass::output,
                     builder.output("y", DType::f32, sizes(constant(9))), 36);
  builder
      .launch("gather", {table, index, out, builder.fault()},
              sizes(constant(3)), constant(9))
      .fault = true;
  for (int threads : {1, 2, 4}) {
    auto context = makeContext(builder, threads);
    std::vector<float> t = {10, 20, 30};
    std::vector<int64_t> good = {0, 1, 2, 2, 1, 0, 0, 0, 0}, bad = good;
    ASSERT_THAT(bind(*context, 0, t, {3}), succeeds());
    ASSERT_THAT(bind(*context, 1, good, {9}, DType::i64), succeeds());
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(floatsOf(context->output(0))[3], 30);
    bad[4] = -7;
    bad[8] = 99;
    ASSERT_THAT(bind(*context, 1, bad, {9}, DType::i64), succeeds());
    for (int i = 0; i < 20; ++i)
      EXPECT_THAT(
          context->run(),
          failsWith(Code::Usage, "'gather_node': index -7 is out of range"));
  }
}

TEST(Walker, RefusesACopyLargerThanItsBuffer) {
  ScalarProgram program;
  program.copy(program.in, program.out, 8);
  EXPECT_THAT(program.runStatus(0),
              failsWith(Code::BadData, "copy of 8 bytes"));
}

TEST(Walker, RefusesAViewThatEndsAfterItsBuffer) {
  ScalarProgram program;
  uint32_t pair = program.builder.scratch(8);
  uint32_t last = program.builder.view(pair, constant(4), 4);
  program.copy(program.in, last, 4);
  EXPECT_THAT(program.runStatus(0), succeeds());
  uint32_t beyond = program.builder.view(pair, constant(6), 4);
  program.copy(program.in, beyond, 1);
  EXPECT_THAT(program.runStatus(0),
              failsWith(Code::BadData, "view of 4 bytes at byte 6"));
}

TEST(Walker, RefusesAnOutputLargerThanItsMemory) {
  // y is planned for 3 floats; the data asks for `n` of them.
  ProgramBuilder builder;
  builder.entry().slot_count = 1;
  uint32_t in =
      builder.buffer(StorageClass::input,
                     builder.input("n", DType::i64, sizes()), sizeof(int64_t));
  builder.buffer(StorageClass::output,
                 builder.output("y", DType::f32, sizes(slot(0))), 12);
  format::ReadSizeT read;
  read.buffer = in;
  read.dtype = DType::i64;
  read.max = INT64_MAX;
  builder.command(std::move(read));
  auto context = makeContext(builder);
  for (int64_t n : {int64_t(3), int64_t(4), INT64_MAX}) {
    std::vector<int64_t> value = {n};
    ASSERT_THAT(bind(*context, 0, value, {}, DType::i64), succeeds());
    Status status = context->run();
    EXPECT_EQ(status.code(), n == 3 ? Code::Ok : Code::BadData);
  }
}

namespace {

/// Writes down what the buffers of launches hold, and ends the walk if told to.
struct Diary : LaunchObserver {
  Status before(const format::Launch &launch,
                std::span<void *const> buffers) override {
    nodes.push_back(launch.node()->str());
    values.push_back(*static_cast<float *>(buffers[0]));
    return Status();
  }
  Status after(const format::Launch &,
               std::span<void *const> buffers) override {
    values.push_back(*static_cast<float *>(buffers[1]));
    return endsWalk ? Status(Code::Mismatch, "enough") : Status();
  }

  std::vector<std::string> nodes;
  std::vector<float> values;
  bool endsWalk = false;
};

} // namespace

/// Of all that is launched, as often as it is.
TEST(Walker, CountsFlops) {
  ScalarProgram program;
  ProgramBuilder &builder = program.builder;
  builder.entry().slot_count = 1;
  auto addLoop = [&](int64_t trips) {
    format::LoopT loop;
    loop.iteration = 0;
    loop.trips = constant(trips);
    loop.max_trips = trips;
    loop.body = std::make_unique<format::BlockT>();
    return &builder.command(std::move(loop));
  };
  program.addOne(program.in, program.out).flops = constant(1000);
  program.addOne(program.in, program.out); // not known
  builder.pushBlock(*addLoop(4)->body);
  program.addOne(program.out, program.out).flops = constant(10);
  program.addOne(program.out, program.out).flops = slot(0);
  builder.popBlock();
  uint32_t condition = builder.scratch(1);
  builder.launch("is_below", {program.in, condition}, sizes(constant(10)),
                 constant(1));
  format::IfT branch;
  branch.condition = condition;
  branch.then_block = std::make_unique<format::BlockT>();
  branch.else_block = std::make_unique<format::BlockT>();
  format::IfT &added = builder.command(std::move(branch));
  builder.pushBlock(*added.then_block);
  program.addOne(program.in, program.out).flops = constant(100000);
  builder.popBlock();
  auto context = makeContext(builder);
  std::vector<float> x = {5};
  ASSERT_THAT(bind(*context, 0, x, {}), succeeds());
  context->walker().countFlops();
  EXPECT_EQ(context->walker().flops(), 0);
  constexpr double kBefore = 1000 + 4 * 10 + (0 + 1 + 2 + 3);
  for (int run = 0; run < 2; ++run) {
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(context->walker().flops(), kBefore + 100000);
  }
  x = {50};
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(context->walker().flops(), kBefore);
}

TEST(Walker, ShowsLaunchesToAnObserver) {
  ScalarProgram program;
  uint32_t middle = program.builder.scratch(4);
  program.addOne(program.in, middle);
  program.addOne(middle, program.out);
  auto context = makeContext(program.builder);
  std::vector<float> x = {5};
  ASSERT_THAT(bind(*context, 0, x, {}), succeeds());
  Diary diary;
  context->walker().setObserver(&diary);
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(diary.nodes, std::vector<std::string>(2, "add_one_node"));
  EXPECT_EQ(diary.values, (std::vector<float>{5, 6, 6, 7}));
  diary.endsWalk = true;
  EXPECT_THAT(context->run(), failsWith(Code::Mismatch, "enough"));
  EXPECT_EQ(diary.values.size(), 6u);
  context->walker().setObserver(nullptr);
  EXPECT_THAT(context->run(), succeeds());
}

/// Walks the main entry, which nobody verified.
static Status walkUnverified(const std::vector<std::byte> &bytes) {
  const format::Program &program = *format::GetProgram(bytes.data());
  const format::Entry *entry = program.entries()->Get(0);
  ThreadPool pool(1);
  CpuDevice device({});
  auto workspace = unwrap(
      Workspace::create(device, std::span(&entry, 1), {.runner = &pool}));
  return Walker(program, *entry, workspace).walk();
}

TEST(Walker, StopsAtWhatVerificationRefuses) {
  ProgramBuilder whole;
  EXPECT_THAT(walkUnverified(whole.program()), succeeds());
  whole.copy(whole.scratch(4), whole.scratch(4), 4);
  std::vector<std::byte> spoiled = whole.program();
  spoilFirstCommand(spoiled);
  EXPECT_THAT(walkUnverified(spoiled), failsWith(Code::Internal, "unverified"));
}
