// Programs on the emulated device: all of the runtime but the driver itself.

#include "runtime/train/Checkpoint.h"
#include "runtime/train/Session.h"
#include "tests/runtime/Allocations.h"
#include "tests/runtime/train/LineProgram.h"

#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::SizeOp;
using format::StorageClass;

static std::shared_ptr<const Executable>
loadEmulated(ProgramBuilder &builder, const std::string &device = "emulated") {
  TemporaryFolder folder;
  builder.compileForDevice();
  builder.write(folder / "m.tcc");
  ExecutableOptions options;
  options.device = device;
  return loadExecutable(folder / "m.tcc", options);
}

static std::unique_ptr<Context>
makeEmulated(ProgramBuilder &builder, const std::string &device = "emulated") {
  return unwrap(Context::create(loadEmulated(builder, device)));
}

static std::vector<Expr> list(std::initializer_list<int64_t> values) {
  std::vector<Expr> exprs;
  for (int64_t value : values)
    exprs.push_back(constant(value));
  return exprs;
}

/// y = t[i] twice: z = t[j] comes after it.
static ProgramBuilder gathersProgram() {
  ProgramBuilder builder;
  uint32_t t = builder.buffer(StorageClass::input,
                              builder.input("t", DType::f32, list({3})), 12);
  for (const char *name : {"i", "j"}) {
    uint32_t index = builder.buffer(
        StorageClass::input, builder.input(name, DType::i64, list({4})), 32);
    uint32_t out = builder.buffer(
        StorageClass::output,
        builder.output(concat("t", name), DType::f32, list({4})), 16);
    format::LaunchT &launch = builder.launch(
        "gather", {t, index, out, builder.fault()}, list({3}), constant(4));
    launch.fault = true;
    launch.node = concat("gather_", name);
  }
  return builder;
}

TEST(CudaDevice, RunsAProgramForEachShape) {
  ProgramBuilder builder = addOneProgram();
  auto context = makeEmulated(builder);
  // Each a first time, a time that is captured, and ones that are replayed.
  for (int run = 0; run < 4; ++run)
    for (int64_t batch : {1, 8, 3}) {
      std::vector<float> x(batch * 4);
      std::iota(x.begin(), x.end(), run * 100);
      ASSERT_THAT(bind(*context, 0, x, {batch, 4}), succeeds());
      ASSERT_THAT(context->run(), succeeds());
      std::vector<float> expected(x.size());
      std::iota(expected.begin(), expected.end(), run * 100 + 1);
      EXPECT_EQ(floatsOf(context->output(0)), expected);
    }
}

TEST(CudaDevice, KeepsTheGraphsThatRanLast) {
  ProgramBuilder builder = addOneProgram();
  builder.tables.symbols[0]->max = 16;
  for (auto &buffer : builder.entry().buffers)
    buffer->max_bytes = 16 * 16;
  auto context = makeEmulated(builder);
  for (int run = 0; run < 3; ++run)
    for (int64_t batch = 1; batch <= 16; ++batch) {
      std::vector<float> x(batch * 4, static_cast<float>(run));
      ASSERT_THAT(bind(*context, 0, x, {batch, 4}), succeeds());
      for (int again = 0; again < 3; ++again) {
        ASSERT_THAT(context->run(), succeeds());
        EXPECT_EQ(floatsOf(context->output(0)),
                  std::vector<float>(x.size(), run + 1.0f));
      }
    }
}

TEST(CudaDevice, WritesWhatTheCallerBound) {
  ProgramBuilder builder = addOneProgram();
  auto context = makeEmulated(builder);
  std::vector<float> x(4, 1), y(4);
  ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
  ASSERT_THAT(context->bindOutput(0, y.data(), 16), succeeds());
  for (float value : {1, 5, 7, 9}) {
    x.assign(4, value);
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(y, std::vector<float>(4, value + 1));
  }
}

TEST(CudaDevice, TakesItsOwnMemoryWithoutCopies) {
  ProgramBuilder builder = addOneProgram();
  auto executable = loadEmulated(builder);
  auto context = unwrap(Context::create(executable));
  Device &device = executable->device();
  Allocator allocator = device.allocator(systemAllocator());
  Memory from = unwrap(Memory::allocate(64, allocator, "x"));
  Memory to = unwrap(Memory::allocate(64, allocator, "y"));
  std::vector<float> x = {1, 2, 3, 4}, y(4);
  int64_t shape[] = {1, 4};
  ASSERT_THAT(device.write(from.data(), x.data(), 16), succeeds());
  ASSERT_THAT(context->bindInput(0, {from.data(), DType::f32, shape, 0}),
              succeeds());
  ASSERT_THAT(context->bindOutput(0, {to.data(), DType::f32, shape, 0}),
              succeeds());
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(context->output(0).data, to.data());
  ASSERT_THAT(device.read(y.data(), to.data(), 16), succeeds());
  EXPECT_EQ(y, (std::vector<float>{2, 3, 4, 5}));
  EXPECT_THAT(context->bindInput(0, {from.data() + 4, DType::f32, shape, 0}),
              failsWith(Code::Usage, "a multiple of 64"));
  EXPECT_THAT(context->bindInput(0, {from.data(), DType::f32, shape, 1}),
              failsWith(Code::Usage, "lies on CUDA device 1"));
}

/// The emulator allocates for launches: there are copies alone.
TEST(CudaDevice, AReplayAllocatesNothing) {
  ProgramBuilder builder;
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, list({4})), 16);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, list({4})), 16);
  uint32_t middle = builder.scratch(16);
  for (auto [from, to] : {std::pair(x, middle), std::pair(middle, y)}) {
    format::CopyT copy;
    copy.from = from;
    copy.to = to;
    copy.bytes = constant(16);
    builder.command(std::move(copy));
  }
  auto context = makeEmulated(builder);
  std::vector<float> in = {1, 2, 3, 4};
  ASSERT_THAT(bind(*context, 0, in, {4}), succeeds());
  for (int run = 0; run < 3; ++run)
    ASSERT_THAT(context->run(), succeeds());
  int64_t before = allocationCount();
  Status status = context->run();
  EXPECT_EQ(allocationCount(), before);
  EXPECT_THAT(status, succeeds());
  EXPECT_EQ(floatsOf(context->output(0)), in);
}

TEST(CudaDevice, NamesTheFirstBadIndexOfARun) {
  ProgramBuilder builder = gathersProgram();
  auto context = makeEmulated(builder);
  std::vector<float> t = {1, 2, 3};
  std::vector<int64_t> i(4, 1), j(4, 2);
  ASSERT_THAT(bind(*context, 0, t, {3}), succeeds());
  ASSERT_THAT(bind(*context, 1, i, {4}, DType::i64), succeeds());
  ASSERT_THAT(bind(*context, 2, j, {4}, DType::i64), succeeds());
  for (int run = 0; run < 4; ++run) {
    i[2] = j[1] = 1;
    ASSERT_THAT(context->run(), succeeds());
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(4, 2));
    j[1] = 7;
    EXPECT_THAT(
        context->run(),
        failsWith(Code::Usage, "node 'gather_j': index 7 is out of range"));
    i[2] = -1;
    EXPECT_THAT(
        context->run(),
        failsWith(Code::Usage, "node 'gather_i': index -1 is out of range"));
  }
}

/// Loops of launches that may fault: more than the entry has of them.
TEST(CudaDevice, ChecksIndicesOfLoops) {
  ProgramBuilder builder = gathersProgram();
  builder.entry().slot_count = 1;
  format::LoopT loop;
  loop.trips = constant(5);
  loop.max_trips = 5;
  loop.body = std::make_unique<format::BlockT>();
  std::swap(loop.body->commands, builder.entry().body->commands);
  builder.command(std::move(loop));
  auto context = makeEmulated(builder);
  std::vector<float> t = {1, 2, 3};
  std::vector<int64_t> i(4, 1);
  ASSERT_THAT(bind(*context, 0, t, {3}), succeeds());
  ASSERT_THAT(bind(*context, 1, i, {4}, DType::i64), succeeds());
  ASSERT_THAT(bind(*context, 2, i, {4}, DType::i64), succeeds());
  for (int run = 0; run < 3; ++run) {
    i[0] = 1;
    ASSERT_THAT(context->run(), succeeds());
    i[0] = 3;
    EXPECT_THAT(context->run(), failsWith(Code::Usage, "'gather_i': index 3"));
  }
}

/// while (x < 5) x += 1; then a size that a kernel counts.
TEST(CudaDevice, ReadsSizesAndConditions) {
  ProgramBuilder builder;
  builder.entry().slot_count = 2;
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, {}), 4);
  std::vector<Expr> shape;
  shape.push_back(slot(1));
  uint32_t y =
      builder.buffer(StorageClass::output,
                     builder.output("y", DType::f32, std::move(shape)), 16);
  uint32_t value = builder.scratch(4), next = builder.scratch(4);
  uint32_t condition = builder.scratch(1), count = builder.scratch(8);
  auto copy = [&](uint32_t from, uint32_t to) {
    format::CopyT copy;
    copy.from = from;
    copy.to = to;
    copy.bytes = constant(4);
    builder.command(std::move(copy));
  };
  copy(x, value);
  builder.launch("is_below", {value, condition}, list({5}), constant(1));
  format::LoopT loop;
  loop.condition = condition;
  loop.max_trips = 10;
  loop.body = std::make_unique<format::BlockT>();
  format::LoopT &added = builder.command(std::move(loop));
  builder.pushBlock(*added.body);
  builder.launch("add_one", {value, next}, list({1, 1}), constant(1));
  copy(next, value);
  builder.launch("is_below", {value, condition}, list({5}), constant(1));
  builder.popBlock();
  copy(value, y);
  builder.launch("count_positive", {value, count}, list({1}), constant(1));
  format::ReadSizeT read;
  read.slot = 1;
  read.buffer = count;
  read.dtype = DType::i64;
  read.max = 4;
  builder.command(std::move(read));
  auto context = makeEmulated(builder);
  for (float start : {2.0f, 4.5f, 9.0f}) {
    std::vector<float> in = {start};
    ASSERT_THAT(bind(*context, 0, in, {}), succeeds());
    ASSERT_THAT(context->run(), succeeds());
    float expected = start;
    while (expected < 5)
      expected += 1;
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>{expected});
  }
}

TEST(CudaDevice, StatesStayThere) {
  ProgramBuilder builder;
  uint32_t in = builder.input("s", DType::f32, list({2}));
  uint32_t out = builder.output("s'", DType::f32, list({2}));
  builder.state(in, out);
  uint32_t from = builder.buffer(StorageClass::state, 0, 8);
  uint32_t to = builder.buffer(StorageClass::state, 0, 8);
  builder.entry().buffers[to]->next = true;
  builder.launch("add_one", {from, to}, list({2, 2}), constant(1));
  auto context = makeEmulated(builder);
  for (float run = 1; run < 6; ++run) {
    ASSERT_THAT(context->run(), succeeds());
    ASSERT_THAT(context->fetchStates(), succeeds());
    EXPECT_EQ(floatsOf(context->output(0)), std::vector<float>(2, run));
  }
  std::vector<float> first = {10, 20}, after(2);
  ASSERT_THAT(bind(*context, 0, first, {2}), succeeds());
  ASSERT_THAT(context->bindOutput(0, after.data(), 8), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(after, (std::vector<float>{11, 21}));
}

/// Constants of several pieces of the staging memory.
TEST(CudaDevice, UploadsWeightsInPieces) {
  constexpr int64_t kCount = 5'000'000;
  ProgramBuilder builder;
  std::vector<float> values(kCount);
  std::iota(values.begin(), values.end(), 0.0f);
  builder.weight("unread", {1, 2});
  uint32_t w = builder.buffer(StorageClass::constant,
                              builder.weight("w", values), kCount * 4);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, list({kCount})),
                              kCount * 4);
  builder.launch("add_one", {w, y}, list({kCount, kCount}), constant(1));
  auto context = makeEmulated(builder);
  ASSERT_THAT(context->run(), succeeds());
  std::vector<float> found = floatsOf(context->output(0));
  for (int64_t i : {int64_t(0), kCount / 2, kCount - 1})
    EXPECT_EQ(found[i], values[i] + 1);
}

/// The bits of a session are those of the host.
TEST(CudaDevice, TrainsAsTheHost) {
  ProgramBuilder onHost = lineProgram(), builder = lineProgram();
  TemporaryFolder folder;
  onHost.write(folder / "host.tcc");
  auto host =
      unwrap(TrainingSession::create(loadExecutable(folder / "host.tcc")));
  auto device = unwrap(TrainingSession::create(loadEmulated(builder)));
  std::vector<float> x = {0.5f, -1, 1.5f, 0.25f}, y = {1, -2, 3, 0.5f};
  int64_t shape[] = {kLineBatch};
  TensorView batch[] = {{x.data(), DType::f32, shape},
                        {y.data(), DType::f32, shape}};
  for (int step = 0; step < 5; ++step)
    for (TrainingSession *session : {host.get(), device.get()}) {
      ASSERT_THAT(session->step(batch), succeeds());
      ASSERT_THAT(session->accumulate(batch), succeeds());
      ASSERT_THAT(session->accumulate(batch), succeeds());
      ASSERT_THAT(session->apply(), succeeds());
    }
  EXPECT_EQ(device->stepCount(), 10);
  EXPECT_EQ(host->metrics().loss, device->metrics().loss);
  Variables::Snapshot expected = unwrap(host->variables().snapshot());
  Variables::Snapshot found = unwrap(device->variables().snapshot());
  for (size_t i = 0; i < host->variables().size(); ++i)
    EXPECT_TRUE(std::ranges::equal(expected.bytes(i), found.bytes(i)));
  std::string saved = unwrap(saveCheckpoint(*device, folder / "run"));
  ASSERT_THAT(device->initialize(), succeeds());
  ASSERT_THAT(restoreCheckpoint(*device, saved), succeeds());
  EXPECT_EQ(device->stepCount(), 10);
  Evaluation ours, theirs;
  ASSERT_THAT(device->evaluate(batch, ours), succeeds());
  ASSERT_THAT(host->evaluate(batch, theirs), succeeds());
  EXPECT_EQ(ours.loss, theirs.loss);
}

TEST(CudaDevice, RefusesPackagesForAnotherDevice) {
  TemporaryFolder folder;
  ProgramBuilder onHost = addOneProgram(), builder = addOneProgram();
  onHost.write(folder / "host.tcc");
  builder.compileForDevice();
  builder.write(folder / "device.tcc");
  auto load = [&](const char *name, const char *device) {
    ExecutableOptions options;
    options.device = device;
    return Executable::load(unwrap(Package::open(folder / name)), options)
        .takeStatus();
  };
  EXPECT_THAT(load("host.tcc", "emulated"),
              failsWith(Code::Device, "for the cpu, not for device"));
  EXPECT_THAT(load("device.tcc", "cpu"),
              failsWith(Code::Device, "for CUDA, not for device 'cpu'"));
  EXPECT_THAT(load("device.tcc", "cuda:x"),
              failsWith(Code::Device, "no device 'cuda:x'"));
}

/// Of two steps under way each has its own batch and its own metrics.
TEST(CudaDevice, TakesTheNextBatchWhileItWorks) {
  ProgramBuilder builder = lineProgram(), same = lineProgram();
  auto steps = unwrap(TrainingSession::create(loadEmulated(same)));
  auto flights = unwrap(TrainingSession::create(loadEmulated(builder)));
  ASSERT_EQ(flights->depth(), 2u);
  EXPECT_THAT(flights->finish(), failsWith(Code::Usage, "no step"));
  std::vector<float> x(kLineBatch), y(kLineBatch);
  int64_t shape[] = {kLineBatch};
  TensorView batch[] = {{x.data(), DType::f32, shape},
                        {y.data(), DType::f32, shape}};
  auto fill = [&](int step) {
    for (int i = 0; i < kLineBatch; ++i) {
      x[i] = static_cast<float>(i + step) / 8;
      y[i] = 3 * x[i];
    }
  };
  std::vector<double> expected, found;
  constexpr int kSteps = 7;
  for (int step = 0; step < kSteps; ++step) {
    fill(step);
    ASSERT_THAT(steps->step(batch), succeeds());
    expected.push_back(steps->metrics().loss);
  }
  flights->setCallback([&](const StepMetrics &metrics) {
    EXPECT_EQ(metrics.step, static_cast<int64_t>(found.size()) + 1);
    found.push_back(metrics.loss);
  });
  using Kind = TrainingSession::StepKind;
  for (int step = 0; step < kSteps; ++step) {
    fill(step);
    ASSERT_THAT(flights->start(Kind::Train, batch), succeeds());
    if (flights->underWay() < flights->depth())
      continue;
    EXPECT_THAT(flights->start(Kind::Train, batch),
                failsWith(Code::Usage, "2 steps are under way"));
    ASSERT_THAT(flights->finish(), succeeds());
  }
  ASSERT_THAT(flights->finish(), succeeds());
  EXPECT_EQ(found, expected);
  // What is under way when a session ends is waited for.
  ASSERT_THAT(flights->start(Kind::Train, batch), succeeds());
}

/// An observer sees results, and bad indices end an observed run, too.
TEST(CudaDevice, ObserversSeeEachLaunch) {
  struct Observer : LaunchObserver {
    Status before(const format::Launch &, std::span<void *const>) override {
      return Status();
    }
    Status after(const format::Launch &, std::span<void *const>) override {
      ++launches;
      return Status();
    }
    int launches = 0;
  } observer;
  ProgramBuilder builder = gathersProgram();
  auto context = makeEmulated(builder);
  std::vector<float> t = {1, 2, 3};
  std::vector<int64_t> i(4, 1);
  ASSERT_THAT(bind(*context, 0, t, {3}), succeeds());
  ASSERT_THAT(bind(*context, 1, i, {4}, DType::i64), succeeds());
  ASSERT_THAT(bind(*context, 2, i, {4}, DType::i64), succeeds());
  context->walker().setObserver(&observer);
  for (int run = 0; run < 3; ++run)
    ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(observer.launches, 6);
  i[1] = 9;
  EXPECT_THAT(context->run(), failsWith(Code::Usage, "'gather_i': index 9"));
  EXPECT_EQ(observer.launches, 6);
}
