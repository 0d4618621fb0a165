// Programs on the emulated device: all of the runtime but the driver itself.

#include "runtime/package/Safetensors.h"
#include "tests/runtime/Allocations.h"
#include "tests/runtime/Fixture.h"

#include <numeric>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::SizeOp;
using format::StorageClass;

static std::unique_ptr<Context> makeEmulated(ProgramBuilder &builder) {
  return unwrap(Context::create(loadEmulated(builder)));
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
  auto &commands = builder.entry().body->commands;
  commands[0]->action.AsLaunch()->flops =
      code({{SizeOp::slot, 0}, {SizeOp::constant, 4}, {SizeOp::mul, 0}});
  auto context = makeEmulated(builder);
  context->walker().countFlops();
  for (int run = 0; run < 3; ++run)
    for (int64_t batch = 1; batch <= 16; ++batch) {
      std::vector<float> x(batch * 4, static_cast<float>(run));
      ASSERT_THAT(bind(*context, 0, x, {batch, 4}), succeeds());
      for (int again = 0; again < 3; ++again) {
        ASSERT_THAT(context->run(), succeeds());
        EXPECT_EQ(floatsOf(context->output(0)),
                  std::vector<float>(x.size(), run + 1.0f));
        EXPECT_EQ(context->walker().flops(), 4.0 * double(batch));
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

/// packed = 2 a is computed on the host, y = packed + packed on the device.
TEST(CudaDevice, ConstantsArePreparedOnTheHost) {
  ProgramBuilder builder;
  builder.modelTensor("a", {2});
  builder.weight("packed", {5, 5}, {0});
  uint32_t packed = builder.buffer(StorageClass::constant, 0, 8);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, list({2})), 8);
  builder.launch("add", {packed, packed, y}, list({2, 1}), constant(2));
  builder.inEntry(EntryKind::prepare);
  uint32_t made = builder.output("packed", DType::f32, list({2}));
  uint32_t a = builder.buffer(StorageClass::model, 0, 8);
  uint32_t to = builder.buffer(StorageClass::output, made, 8);
  builder.launch("call_by_table", {a, to}, list({2, 0}), constant(1));
  EXPECT_EQ(
      [&] {
        auto context = makeEmulated(builder);
        EXPECT_THAT(context->run(), succeeds());
        return floatsOf(context->output(0));
      }(),
      (std::vector<float>{10, 10}));
  TemporaryFolder folder;
  std::vector<float> values = {3, 4};
  StoredTensor given = {"a", DType::f32, {2}, std::as_bytes(std::span(values))};
  ASSERT_THAT(writeSafetensors(folder / "w.safetensors", {&given, 1}),
              succeeds());
  builder.write(folder / "m.tcc");
  ExecutableOptions options;
  options.device = "emulated";
  options.weightsFile = folder / "w.safetensors";
  auto context =
      unwrap(Context::create(loadExecutable(folder / "m.tcc", options)));
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(floatsOf(context->output(0)), (std::vector<float>{12, 16}));
}

TEST(CudaDevice, ContextsOfThreadsShareIt) {
  ProgramBuilder builder = addOneProgram();
  auto executable = loadEmulated(builder);
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number)
    threads.emplace_back([&, number] {
      auto context = unwrap(Context::create(executable));
      std::vector<float> x(4, static_cast<float>(number));
      ASSERT_THAT(bind(*context, 0, x, {1, 4}), succeeds());
      for (int run = 0; run < 20; ++run) {
        ASSERT_THAT(context->run(), succeeds());
        ASSERT_EQ(floatsOf(context->output(0)),
                  std::vector<float>(4, number + 1.0f));
      }
    });
  for (std::thread &thread : threads)
    thread.join();
}
