//===- TraceClock.h - The clock of traces -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRACE_TRACECLOCK_H
#define TCC_RUNTIME_TRACE_TRACECLOCK_H

#include <atomic>
#include <cstdint>
#include <x86intrin.h>

namespace tcc::runtime {

/// Has `readTraceClock` read the processor's counter from now on, which takes a
/// third of the time of a call of the system, where the kernel itself keeps the
/// time by it: then it counts alike on all cores. The first call takes 5 ms.
void calibrateTraceClock();

namespace detail {

/// The counter's rate. Nanoseconds are `base` + (ticks - `first`) * `scale` /
/// 2^32.
struct CounterRate {
  uint64_t first = 0, scale = 0;
  int64_t base = 0;
};

/// Null: the steady clock is read.
extern std::atomic<const CounterRate *> counterRate;

int64_t readSteadyClock();

} // namespace detail

/// Nanoseconds of one clock for all threads, which starts with the system. The
/// processor may read it before a load that comes earlier is done, so up to a
/// microsecond early where other cores write what is loaded.
inline int64_t readTraceClock() {
  const detail::CounterRate *rate =
      detail::counterRate.load(std::memory_order_acquire);
  if (!rate)
    return detail::readSteadyClock();
  auto ticks = static_cast<unsigned __int128>(__rdtsc() - rate->first);
  return rate->base + static_cast<int64_t>(ticks * rate->scale >> 32);
}

/// Once loads that come earlier are done: after a wait for another thread, what
/// that one has read is not later. Takes twice the time.
inline int64_t readTraceClockInOrder() {
  _mm_lfence();
  return readTraceClock();
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRACE_TRACECLOCK_H
