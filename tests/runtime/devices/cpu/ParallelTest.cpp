// Results do not depend on threads, runs or other contexts.

#include "runtime/base/SharingTrial.h"
#include "tests/runtime/Fixture.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <xmmintrin.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

static constexpr int64_t kBlocks = 57, kBlock = 33;

/// What a launch says of its work.
struct Work {
  int64_t flops, bytes;
};

/// The sum of kBlocks x kBlock floats by a fixed tree of partial sums, the work
/// of which is known or not.
static ProgramBuilder sumProgram(std::optional<Work> work = std::nullopt) {
  ProgramBuilder builder;
  std::vector<Expr> shape, one, all;
  shape.push_back(constant(kBlocks * kBlock));
  one.push_back(constant(kBlock));
  all.push_back(constant(kBlocks));
  uint32_t in = builder.buffer(StorageClass::input,
                               builder.input("x", DType::f32, std::move(shape)),
                               kBlocks * kBlock * 4);
  uint32_t out = builder.buffer(StorageClass::output,
                                builder.output("y", DType::f32, {}), 4);
  uint32_t partial = builder.scratch(kBlocks * 4);
  format::LaunchT &sums = builder.launch("partial_sums", {in, partial},
                                         std::move(one), constant(kBlocks));
  if (work) {
    sums.flops = constant(work->flops);
    sums.bytes = constant(work->bytes);
  }
  builder.launch("final_sum", {partial, out}, std::move(all), constant(1));
  return builder;
}

static std::vector<float> someFloats() {
  std::vector<float> values(kBlocks * kBlock);
  uint32_t state = 1;
  for (float &value : values) {
    state = state * 1664525 + 1013904223;
    value = static_cast<float>(state) / 1e6f - 1000;
  }
  return values;
}

static float runOnce(Context &context) {
  EXPECT_THAT(context.run(), succeeds());
  return floatsOf(context.output(0))[0];
}

TEST(Parallel, SameBitsAtAnyThreadCount) {
  ProgramBuilder builder = sumProgram();
  std::vector<float> x = someFloats();
  auto alone = makeContext(builder, 1);
  ASSERT_THAT(bind(*alone, 0, x, {kBlocks * kBlock}), succeeds());
  float expected = runOnce(*alone);
  for (int threads : {1, 2, 4}) {
    auto context = makeContext(builder, threads);
    ASSERT_THAT(bind(*context, 0, x, {kBlocks * kBlock}), succeeds());
    for (int run = 0; run < 100; ++run)
      ASSERT_EQ(runOnce(*context), expected);
  }
}

TEST(Parallel, ContextsShareAProgram) {
  TemporaryFolder folder;
  sumProgram().write(folder / "m.tcc");
  auto executable = loadExecutable(folder / "m.tcc");
  std::vector<float> x = someFloats();
  auto work = [&](float &result) {
    ContextOptions options;
    options.threads = 2;
    auto context = unwrap(Context::create(executable, options));
    ASSERT_THAT(bind(*context, 0, x, {kBlocks * kBlock}), succeeds());
    result = runOnce(*context);
    for (int run = 0; run < 200; ++run)
      ASSERT_EQ(runOnce(*context), result);
  };
  float first = 0, second = 1;
  std::thread other([&] { work(first); });
  work(second);
  other.join();
  EXPECT_EQ(first, second);
}

TEST(Parallel, ContextsShareAPool) {
  TemporaryFolder folder;
  sumProgram().write(folder / "m.tcc");
  auto executable = loadExecutable(folder / "m.tcc");
  std::vector<float> x = someFloats();
  ThreadPool pool(3);
  auto work = [&] {
    ContextOptions options;
    options.runner = &pool;
    auto context = unwrap(Context::create(executable, options));
    ASSERT_THAT(bind(*context, 0, x, {kBlocks * kBlock}), succeeds());
    float expected = runOnce(*context);
    for (int run = 0; run < 100; ++run)
      ASSERT_EQ(runOnce(*context), expected);
  };
  std::thread other(work);
  work();
  other.join();
}

TEST(Parallel, ResultsDoNotDependOnTheCallersRounding) {
  constexpr unsigned kFlushAndZeroDenormals = 0x8040;
  ProgramBuilder builder = sumProgram();
  std::vector<float> x(kBlocks * kBlock, 1e-39f);
  for (int threads : {1, 2}) {
    auto context = makeContext(builder, threads);
    ASSERT_THAT(bind(*context, 0, x, {kBlocks * kBlock}), succeeds());
    float expected = runOnce(*context);
    EXPECT_GT(expected, 1e-36f);
    unsigned saved = _mm_getcsr();
    _mm_setcsr(saved | kFlushAndZeroDenormals);
    float found = runOnce(*context);
    unsigned after = _mm_getcsr();
    _mm_setcsr(saved);
    EXPECT_EQ(found, expected);
    EXPECT_EQ(after, saved | kFlushAndZeroDenormals);
  }
}

namespace {

/// Two threads' work on one; counts how often it is asked.
class CountingRunner final : public TaskRunner {
public:
  int threads() const override { return 2; }
  bool isAwake() const override { return !sleeps; }
  void run(int64_t tasks, int64_t grain, TaskFunction function,
           void *argument) override {
    ++calls;
    std::this_thread::sleep_for(delay);
    for (int64_t first = 0; first < tasks; first += grain)
      function(argument, first, std::min(first + grain, tasks), 0);
  }

  int calls = 0;
  bool sleeps = false;
  std::chrono::microseconds delay{0}; ///< until the others take part
};

} // namespace

TEST(Parallel, LittleWorkIsNotShared) {
  std::vector<float> x = someFloats();
  std::vector<float> results;
  auto countCalls = [&](std::optional<Work> work) {
    TemporaryFolder folder;
    sumProgram(work).write(folder / "m.tcc");
    CountingRunner runner;
    ContextOptions options;
    options.runner = &runner;
    auto context =
        unwrap(Context::create(loadExecutable(folder / "m.tcc"), options));
    EXPECT_THAT(bind(*context, 0, x, {kBlocks * kBlock}), succeeds());
    results.push_back(runOnce(*context));
    return runner.calls;
  };
  EXPECT_EQ(countCalls(std::nullopt), 1);
  EXPECT_EQ(countCalls(Work{1000, 1000}), 0);
  EXPECT_EQ(countCalls(Work{10'000'000, 1000}), 1);
  EXPECT_EQ(countCalls(Work{1000, 10'000'000}), 1);
  for (float result : results)
    EXPECT_EQ(result, results.front());
}

// Some 60 microseconds of work: less than it takes to wake others, twice more.
TEST(Parallel, SleepersAreNotWokenForLittleWork) {
  std::vector<float> x = someFloats();
  TemporaryFolder folder;
  sumProgram(Work{10'500'000, 1000}).write(folder / "m.tcc");
  CountingRunner runner;
  runner.sleeps = true;
  ContextOptions options;
  options.runner = &runner;
  auto context =
      unwrap(Context::create(loadExecutable(folder / "m.tcc"), options));
  EXPECT_THAT(bind(*context, 0, x, {kBlocks * kBlock}), succeeds());
  std::vector<int> calls;
  for (int run = 0; run < 5; ++run) {
    runOnce(*context);
    calls.push_back(runner.calls);
  }
  EXPECT_EQ(calls, std::vector({0, 1, 1, 2, 2}));
  runner.sleeps = false;
  runOnce(*context);
  EXPECT_EQ(runner.calls, 3);
}

namespace {

/// Gives the trial `count` walks; how many of them were shared.
int takeWalks(SharingTrial &trial, int count, double shared, double alone) {
  int sharedWalks = 0;
  for (int walk = 0; walk < count; ++walk) {
    bool isShared = trial.isShared();
    sharedWalks += isShared;
    trial.add(isShared ? shared : alone);
  }
  return sharedWalks;
}

} // namespace

TEST(SharingTrial, KeepsTheFasterWay) {
  constexpr int kTrial = 2 * SharingTrial::kWalks;
  SharingTrial gains, loses;
  EXPECT_EQ(takeWalks(gains, kTrial, 60, 100), kTrial / 2);
  EXPECT_EQ(takeWalks(gains, 64, 60, 100), 64);
  EXPECT_EQ(takeWalks(loses, kTrial, 99, 100), kTrial / 2);
  EXPECT_EQ(takeWalks(loses, 64, 99, 100), 0);
  EXPECT_TRUE(loses.isShared()); // the next trial
  EXPECT_EQ(takeWalks(loses, kTrial, 50, 100), kTrial / 2);
  EXPECT_EQ(takeWalks(loses, 64, 50, 100), 64);
}

TEST(SharingTrial, LongWalksAreShared) {
  SharingTrial trial;
  EXPECT_EQ(takeWalks(trial, 10'000, 2000, 1000), 10'000);
}

TEST(SharingTrial, TrialsBecomeRare) {
  SharingTrial trial;
  EXPECT_LT(takeWalks(trial, 100'000, 150, 100), 300);
}

namespace {

/// The median of what `count` walks take, in microseconds.
double timeWalks(Context &context, size_t count, float expected) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  for (size_t walk = 0; walk < count; ++walk) {
    auto start = Clock::now();
    EXPECT_EQ(runOnce(context), expected);
    std::chrono::duration<double, std::micro> time = Clock::now() - start;
    times.push_back(time.count());
  }
  std::ranges::nth_element(times, times.begin() + count / 2);
  return times[count / 2];
}

} // namespace

// Each shared launch takes 200 microseconds more than the one thread does.
// Where others have the processors all walks may be long, and are not tried
// alone.
TEST(Parallel, WalksThatThreadsSlowDownStayOnOne) {
  constexpr int kAttempts = 50, kQuietAttempts = 5;
  constexpr double kShort = 500;
  std::vector<float> x = someFloats();
  TemporaryFolder folder;
  ProgramBuilder builder = sumProgram(Work{10'500'000, 1000});
  builder.write(folder / "m.tcc");
  auto alone = makeContext(builder, 1);
  ASSERT_THAT(bind(*alone, 0, x, {kBlocks * kBlock}), succeeds());
  float expected = runOnce(*alone);
  CountingRunner runner;
  runner.delay = std::chrono::microseconds(200);
  ContextOptions options;
  options.runner = &runner;
  int quiet = 0;
  for (int attempt = 0; attempt < kAttempts && quiet < kQuietAttempts;
       ++attempt) {
    auto context =
        unwrap(Context::create(loadExecutable(folder / "m.tcc"), options));
    ASSERT_THAT(bind(*context, 0, x, {kBlocks * kBlock}), succeeds());
    runner.calls = 0;
    double time = timeWalks(*context, SharingTrial::kWalks, expected);
    timeWalks(*context, 60 - SharingTrial::kWalks, expected);
    if (runner.calls == SharingTrial::kWalks)
      return;
    quiet += time < kShort;
  }
  if (quiet < kQuietAttempts)
    GTEST_SKIP() << "other processes have the processors";
  FAIL() << "short walks were shared";
}
