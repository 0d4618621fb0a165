// Programs of several lanes on threads of the host; faults on devices as well.

#include "runtime/devices/cpu/Lane.h"

#include "tests/runtime/Allocations.h"
#include "tests/runtime/Fixture.h"

#include <numeric>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

static std::vector<Expr> list(std::initializer_list<int64_t> values) {
  std::vector<Expr> exprs;
  for (int64_t value : values)
    exprs.push_back(constant(value));
  return exprs;
}

/// b = x + 1; lane 1: c = b, c + 1; lane 2: d = b + 1; y = c + d = 2 x + 5.
static ProgramBuilder forkedProgram() {
  ProgramBuilder builder;
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, list({4})), 16);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, list({4})), 16);
  uint32_t b = builder.scratch(16), c = builder.scratch(16),
           d = builder.scratch(16);
  builder.launch("add_one", {x, b}, list({4, 4}), constant(1));
  builder.orderLanes(0, 1);
  builder.orderLanes(0, 2);
  builder.onLane(1);
  builder.copy(b, c, 16);
  builder.launch("add_one", {c, c}, list({4, 1}), constant(4));
  builder.onLane(2);
  builder.launch("add_one", {b, d}, list({4, 4}), constant(1));
  builder.orderLanes(2, 1);
  builder.onLane(1);
  builder.launch("add", {c, d, d}, list({4, 4}), constant(1));
  builder.orderLanes(1, 0);
  builder.onLane(0);
  builder.launch("add_one", {d, y}, list({4, 4}), constant(1));
  return builder;
}

TEST(Lane, EventsOrderWhatLanesDo) {
  ProgramBuilder builder = forkedProgram();
  for (int threads : {1, 2}) {
    auto context = makeContext(builder, threads);
    std::vector<float> x(4);
    ASSERT_THAT(bind(*context, 0, x, {4}), succeeds());
    for (int run = 0; run < 300; ++run) {
      std::iota(x.begin(), x.end(), static_cast<float>(run));
      ASSERT_THAT(context->run(), succeeds());
      for (int i = 0; i < 4; ++i)
        ASSERT_EQ(floatsOf(context->output(0))[i], 2 * x[i] + 5);
    }
  }
}

TEST(Lane, RunsAllocateNothing) {
  ProgramBuilder builder = forkedProgram();
  auto context = makeContext(builder);
  std::vector<float> x(4);
  ASSERT_THAT(bind(*context, 0, x, {4}), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  int64_t before = allocationCount();
  Status status = context->run();
  EXPECT_EQ(allocationCount(), before);
  EXPECT_THAT(status, succeeds());
}

/// More commands than a lane is ahead by, each iteration after the one before.
TEST(Lane, LoopsGiveMoreThanALaneHolds) {
  constexpr int64_t kTrips = 1000;
  ProgramBuilder builder;
  builder.entry().slot_count = 1;
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, {}), 4);
  uint32_t y = builder.buffer(StorageClass::output,
                              builder.output("y", DType::f32, {}), 4);
  builder.copy(x, y, 4);
  format::LoopT loop;
  loop.trips = constant(kTrips);
  loop.max_trips = kTrips;
  loop.body = std::make_unique<format::BlockT>();
  builder.pushBlock(*builder.command(std::move(loop)).body);
  builder.orderLanes(0, 1);
  builder.onLane(1);
  builder.launch("add_one", {y, y}, list({1, 1}), constant(1));
  builder.orderLanes(1, 0);
  builder.onLane(0);
  builder.launch("add_one", {y, y}, list({1, 1}), constant(1));
  auto context = makeContext(builder);
  std::vector<float> in = {1};
  ASSERT_THAT(bind(*context, 0, in, {}), succeeds());
  ASSERT_THAT(context->run(), succeeds());
  EXPECT_EQ(floatsOf(context->output(0))[0], 1 + 2 * kTrips);
}

/// Lane 1 gathers `early` by indices i, then lane 0 `late` by j: no event
/// orders them.
static ProgramBuilder gathersProgram() {
  ProgramBuilder builder;
  uint32_t t = builder.buffer(StorageClass::input,
                              builder.input("t", DType::f32, list({3})), 12);
  uint32_t fault = builder.fault();
  for (bool isEarly : {true, false}) {
    builder.onLane(isEarly);
    const char *name = isEarly ? "early" : "late";
    uint32_t index = builder.buffer(
        StorageClass::input,
        builder.input(isEarly ? "i" : "j", DType::i64, list({4})), 32);
    uint32_t out = builder.buffer(
        StorageClass::output, builder.output(name, DType::f32, list({4})), 16);
    format::LaunchT &launch = builder.launch("gather", {t, index, out, fault},
                                             list({3}), constant(4));
    launch.fault = true;
    launch.node = name;
  }
  builder.orderLanes(1, 0);
  return builder;
}

static void expectFirstBadIndex(Context &context) {
  std::vector<float> t = {1, 2, 3};
  std::vector<int64_t> i(4), j(4);
  ASSERT_THAT(bind(context, 0, t, {3}), succeeds());
  ASSERT_THAT(bind(context, 1, i, {4}, DType::i64), succeeds());
  ASSERT_THAT(bind(context, 2, j, {4}, DType::i64), succeeds());
  for (int run = 0; run < 20; ++run) {
    i = {0, 5, 2, 1}, j = {0, 1, 6, 1};
    EXPECT_THAT(context.run(), failsWith(Code::Usage, "'early': index 5"));
    i[1] = 1;
    EXPECT_THAT(context.run(), failsWith(Code::Usage, "'late': index 6"));
    j[2] = 2;
    EXPECT_THAT(context.run(), succeeds());
    EXPECT_EQ(floatsOf(context.output(0))[2], 3);
  }
}

/// On the host, and on devices that do the lanes in two orders, which capture
/// and replay their runs.
TEST(Lane, NamesTheFirstBadIndexInTheOrderOfCommands) {
  for (const char *device : {"cpu", "emulated", "emulated:1"}) {
    SCOPED_TRACE(device);
    ProgramBuilder builder = gathersProgram();
    if (device != std::string("cpu"))
      builder.compileForDevice();
    TemporaryFolder folder;
    builder.write(folder / "m.tcc");
    ExecutableOptions options;
    options.device = device;
    auto executable = loadExecutable(folder / "m.tcc", options);
    expectFirstBadIndex(*unwrap(Context::create(executable)));
  }
}

namespace {

/// Fails with the first launch that it is given.
struct ThrowingPool final : TaskRunner {
  int threads() const override { return 2; }
  void run(int64_t, int64_t, TaskFunction, void *) override { throw 42; }
};

} // namespace

/// Lane 1 is at work while lane 0 throws: memory may go once the run is over.
TEST(Lane, AreDoneWhenARunThrows) {
  constexpr int64_t kCount = 1 << 22;
  ProgramBuilder builder;
  auto add = [&](const char *name, int64_t count) {
    return builder.buffer(StorageClass::output,
                          builder.output(name, DType::f32, list({count})),
                          count * sizeof(float));
  };
  uint32_t slow = add("slow", kCount), y = add("y", 4);
  uint32_t x = builder.buffer(StorageClass::input,
                              builder.input("x", DType::f32, list({kCount})),
                              kCount * sizeof(float));
  uint32_t b = builder.scratch(16);
  builder.orderLanes(0, 1);
  builder.onLane(1);
  builder.launch("add_one", {x, slow}, list({kCount, kCount}), constant(1));
  builder.onLane(0);
  builder.launch("add_one", {b, y}, list({4, 1}), constant(4));
  builder.orderLanes(1, 0);
  TemporaryFolder folder;
  builder.write(folder / "m.tcc");
  ThrowingPool pool;
  ContextOptions options;
  options.runner = &pool;
  auto context =
      unwrap(Context::create(loadExecutable(folder / "m.tcc"), options));
  std::vector<float> values(kCount, 2), written(kCount);
  ASSERT_THAT(bind(*context, 0, values, {kCount}), succeeds());
  ASSERT_THAT(
      context->bindOutput(0, written.data(), written.size() * sizeof(float)),
      succeeds());
  for (int run = 0; run < 3; ++run) {
    written.back() = 0;
    EXPECT_THROW((void)context->run(), int);
    EXPECT_EQ(written.back(), 3);
  }
}

/// An event is waited for from both sides, by threads that sleep meanwhile.
TEST(Lane, EventsWakeWhoSleeps) {
  HostEvent event, back;
  std::thread other([&] {
    for (uint32_t number = 1; number <= 50; ++number) {
      event.await(number);
      back.record(number);
    }
  });
  for (uint32_t number = 1; number <= 50; ++number) {
    if (number % 10 == 0)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    event.record(number);
    back.await(number);
  }
  other.join();
}
