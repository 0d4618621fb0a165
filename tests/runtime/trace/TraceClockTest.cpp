#include "runtime/trace/TraceClock.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

using namespace tcc::runtime;

static int64_t readSystem() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Also once it is calibrated it is the system's, but for a drift of 1e-4.
TEST(TraceClock, IsTheSystems) {
  calibrateTraceClock();
  int64_t before = readSystem(), first = readTraceClock();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  int64_t second = readTraceClock(), after = readSystem();
  double passed = double(after - before);
  EXPECT_NEAR(double(second - first), passed, 1e-4 * passed + 50e3);
  constexpr int64_t kOff = 10'000'000;
  EXPECT_LT(std::abs(first - before), kOff);
}

/// What one thread reads after another one has read is not before that.
TEST(TraceClock, GoesForwardOnAllThreads) {
  calibrateTraceClock();
  std::atomic<int64_t> last = 0;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int round = 0; round < 100'000; ++round) {
        int64_t before = last.load();
        int64_t now = readTraceClockInOrder();
        wrong += now < before;
        last.compare_exchange_strong(before, now);
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}
