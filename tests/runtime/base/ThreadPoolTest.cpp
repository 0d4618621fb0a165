#include "runtime/base/ThreadPool.h"

#include "tests/runtime/Allocations.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <optional>
#include <thread>
#include <vector>

using namespace tcc::runtime;

namespace {

/// Counts how often each task ran, and by which workers.
struct Counter {
  explicit Counter(int64_t tasks, int threads)
      : runs(tasks), isBusy(threads), largestRange(0) {}

  static void run(void *argument, int64_t first, int64_t last, int worker) {
    auto &counter = *static_cast<Counter *>(argument);
    EXPECT_FALSE(counter.isBusy[worker].exchange(true));
    for (int64_t task = first; task < last; ++task)
      ++counter.runs[task];
    if (last - first > counter.largestRange)
      counter.largestRange = last - first;
    counter.isBusy[worker] = false;
  }

  std::vector<std::atomic<int>> runs;
  std::vector<std::atomic<bool>> isBusy;
  std::atomic<int64_t> largestRange;
};

} // namespace

TEST(ThreadPool, RunsEachTaskOnce) {
  for (int threads : {1, 2, 4, 7}) {
    ThreadPool pool(threads);
    for (int64_t tasks : {0, 1, 2, 3, 100, 1001})
      for (int64_t grain : {1, 3, 64}) {
        Counter counter(tasks, threads);
        pool.run(tasks, grain, Counter::run, &counter);
        for (auto &runs : counter.runs)
          EXPECT_EQ(runs, 1);
        EXPECT_LE(counter.largestRange, grain);
      }
  }
}

TEST(ThreadPool, WakesSleepingWorkers) {
  ThreadPool pool(3);
  for (int i = 0; i < 5; ++i) {
    // Longer than workers spin.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    Counter counter(50, 3);
    pool.run(50, 1, Counter::run, &counter);
    for (auto &runs : counter.runs)
      EXPECT_EQ(runs, 1);
  }
}

TEST(ThreadPool, CallersTakeTurns) {
  ThreadPool pool(2);
  auto call = [&] {
    for (int i = 0; i < 200; ++i) {
      Counter counter(20, 2);
      pool.run(20, 1, Counter::run, &counter);
      for (auto &runs : counter.runs)
        ASSERT_EQ(runs, 1);
    }
  };
  std::thread other(call);
  call();
  other.join();
}

TEST(ThreadPool, ManyShortJobs) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 20000; ++i)
    pool.run(
        8, 1,
        [](void *argument, int64_t first, int64_t, int) {
          *static_cast<std::atomic<int64_t> *>(argument) += first;
        },
        &sum);
  EXPECT_EQ(sum, 20000 * 28);
}

TEST(ThreadPool, DefaultIsAtLeastOneThread) {
  EXPECT_GE(defaultThreadCount(), 1);
}

TEST(ThreadPool, RunsWithTheThreadsThatMemoryAllows) {
  if (!TCC_COUNTS_ALLOCATIONS)
    GTEST_SKIP();
  for (int64_t allowed = 0; allowed < 8; ++allowed) {
    std::optional<ThreadPool> pool;
    try {
      tcc::tests::ExhaustedMemory memory(allowed);
      pool.emplace(4);
    } catch (const std::bad_alloc &) {
      continue;
    }
    Counter counter(100, pool->threads());
    pool->run(100, 3, Counter::run, &counter);
    for (std::atomic<int> &runs : counter.runs)
      EXPECT_EQ(runs, 1);
  }
}

/// Those beyond a limit take no task, until it is lifted; none waits for them.
TEST(ThreadPool, LimitsThreads) {
  ThreadPool pool(4);
  if (pool.threads() < 4)
    GTEST_SKIP() << "the system has no four threads";
  struct Job {
    std::atomic<int64_t> done{0};
    std::atomic<uint32_t> workers{0};
  };
  auto task = [](void *argument, int64_t first, int64_t last, int worker) {
    auto &job = *static_cast<Job *>(argument);
    job.done += last - first;
    job.workers |= 1u << worker;
  };
  for (int round = 0; round < 200; ++round) {
    int limit = 1 + round % 5;
    pool.limit(limit);
    Job job;
    pool.run(64, 1, task, &job);
    EXPECT_EQ(job.done, 64);
    EXPECT_EQ(job.workers >> std::min(limit, 4), 0u) << limit;
  }
}
