//===- main.cpp - What the runtime itself costs ---------------------------===//
//
// overhead-bench
// Prints the microseconds of an almost empty program of 100 launches, of a loop
// of as many, of a fork and join of two threads, and of two sums, and of a copy
// and a sum, on one lane and on two, by the clock and by the caller's own time.
// On a busy machine two threads rarely run at once: the best tenth still tells.
//
//===----------------------------------------------------------------------===//
#include "tests/runtime/Fixture.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
using format::StorageClass;

static constexpr int kLaunches = 100;
static constexpr int kRepetitions = 2001;

static double microseconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return now.tv_sec * 1e6 + now.tv_nsec * 1e-3;
}

/// The time that a fraction of the repetitions does not exceed.
static double measure(clockid_t clock, double fraction,
                      const std::function<void()> &run) {
  std::vector<double> times(kRepetitions);
  for (double &time : times) {
    double start = microseconds(clock);
    run();
    time = microseconds(clock) - start;
  }
  std::sort(times.begin(), times.end());
  return times[static_cast<size_t>(fraction * (times.size() - 1))];
}

static void print(const char *what, const std::function<void()> &run) {
  measure(CLOCK_MONOTONIC, 0.5, run); // warms up
  double best = measure(CLOCK_MONOTONIC, 0.1, run);
  double median = measure(CLOCK_MONOTONIC, 0.5, run);
  double own = measure(CLOCK_THREAD_CPUTIME_ID, 0.5, run);
  std::printf("%-28s best tenth %8.2f us, median %8.2f us, own time %8.2f us\n",
              what, best, median, own);
}

static std::vector<Expr> sizesOfOne() {
  std::vector<Expr> sizes;
  sizes.push_back(constant(1));
  sizes.push_back(constant(1));
  return sizes;
}

/// y = x + 100, one at a time: by as many launches, or by a loop of one.
static std::unique_ptr<Context> makeProgram(bool isLoop) {
  ProgramBuilder builder;
  builder.entry().slot_count = 1;
  uint32_t in = builder.buffer(StorageClass::input,
                               builder.input("x", DType::f32, {}), 4);
  uint32_t out = builder.buffer(StorageClass::output,
                                builder.output("y", DType::f32, {}), 4);
  builder.launch("add_one", {in, out}, sizesOfOne(), constant(1));
  if (isLoop) {
    format::LoopT loop;
    loop.trips = constant(kLaunches - 1);
    loop.max_trips = kLaunches;
    loop.body = std::make_unique<format::BlockT>();
    builder.pushBlock(*builder.command(std::move(loop)).body);
  }
  for (int i = 1; i < (isLoop ? 2 : kLaunches); ++i)
    builder.launch("add_one", {out, out}, sizesOfOne(), constant(1));
  return makeContext(builder);
}

static void check(const Status &status) {
  if (!status.ok())
    std::fprintf(stderr, "%.*s\n", int(status.message().size()),
                 status.message().data());
}

static void printProgram(const char *what, bool isLoop) {
  std::unique_ptr<Context> context = makeProgram(isLoop);
  std::vector<float> x = {1};
  check(bind(*context, 0, x, {}));
  print(what, [&] { check(context->run()); });
}

static void addSum(ProgramBuilder &builder) {
  constexpr int64_t kCount = 1 << 18;
  uint32_t from = builder.scratch(4 * kCount), to = builder.scratch(4);
  std::vector<Expr> sizes;
  sizes.push_back(constant(kCount));
  builder.launch("final_sum", {from, to}, std::move(sizes), constant(1));
}

/// Takes about as long as the sum.
static void addCopy(ProgramBuilder &builder) {
  constexpr uint64_t kBytes = 4 << 20;
  uint32_t from = builder.scratch(kBytes), to = builder.scratch(kBytes);
  builder.copy(from, to, kBytes);
}

struct Work {
  uint16_t lane;
  void (*add)(ProgramBuilder &builder);
};

/// What lanes do beside each other.
static void printLanes(const char *what, std::initializer_list<Work> list) {
  ProgramBuilder builder;
  builder.orderLanes(0, 1);
  for (const Work &work : list) {
    builder.onLane(work.lane);
    work.add(builder);
  }
  builder.orderLanes(1, 0);
  std::unique_ptr<Context> context = makeContext(builder);
  print(what, [&] { check(context->run()); });
}

/// Each task waits until all have begun, so that every thread takes part.
struct Meeting {
  int64_t threads;
  std::atomic<int64_t> arrivals{0};

  static void join(void *argument, int64_t, int64_t, int) {
    auto &meeting = *static_cast<Meeting *>(argument);
    int64_t last = meeting.arrivals.fetch_add(1) / meeting.threads + 1;
    while (meeting.arrivals.load() < last * meeting.threads)
      __builtin_ia32_pause();
  }
};

int main() {
  printProgram("100 launches", false);
  printProgram("a loop of 100 launches", true);
  printLanes("a sum on lane 0", {{0, addSum}});
  printLanes("a sum on lane 1", {{1, addSum}});
  printLanes("two sums on lane 0", {{0, addSum}, {0, addSum}});
  printLanes("two sums on two lanes", {{1, addSum}, {0, addSum}});
  printLanes("a copy on lane 1", {{1, addCopy}});
  printLanes("a copy and a sum on lane 0", {{0, addCopy}, {0, addSum}});
  printLanes("a copy beside a sum", {{1, addCopy}, {0, addSum}});
  int cores = defaultThreadCount();
  if (cores < 2)
    return 0;
  ThreadPool pool(2);
  Meeting meeting{2};
  print("fork and join of 2 threads",
        [&] { pool.run(2, 1, Meeting::join, &meeting); });
  return 0;
}
