#include "runtime/trace/TraceClock.h"

#include <chrono>
#include <fstream>
#include <string>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::detail;

std::atomic<const CounterRate *> detail::counterRate = nullptr;

int64_t detail::readSteadyClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

namespace {

/// Both clocks at one time.
struct Moment {
  uint64_t ticks;
  int64_t nanoseconds;
};

} // namespace

/// Tries it some times, and takes the try that nothing came between.
static Moment readMoment() {
  constexpr int kTries = 16;
  Moment best = {};
  uint64_t shortest = UINT64_MAX;
  for (int i = 0; i < kTries; ++i) {
    uint64_t before = __rdtsc();
    int64_t nanoseconds = readSteadyClock();
    uint64_t took = __rdtsc() - before;
    if (took >= shortest)
      continue;
    shortest = took;
    best = {before + took / 2, nanoseconds};
  }
  return best;
}

static bool doesKernelUseCounter() {
  std::ifstream file(
      "/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return file >> source && source == "tsc";
}

static const CounterRate *measureRate() {
  if (!doesKernelUseCounter())
    return nullptr;
  Moment first = readMoment();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  Moment second = readMoment();
  static CounterRate rate;
  double perTick = double(second.nanoseconds - first.nanoseconds) /
                   double(second.ticks - first.ticks);
  rate = {.first = first.ticks,
          .scale = static_cast<uint64_t>(perTick * 0x1p32),
          .base = first.nanoseconds};
  return &rate;
}

void runtime::calibrateTraceClock() {
  static const CounterRate *measured = measureRate();
  counterRate.store(measured, std::memory_order_release);
}
