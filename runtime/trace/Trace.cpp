#include "runtime/trace/Trace.h"

#include <algorithm>
#include <chrono>
#include <tuple>

using namespace tcc;
using namespace tcc::runtime;

uint64_t EventRing::take(std::vector<TraceEvent> &list) {
  uint64_t lost = added > events.size() ? added - events.size() : 0;
  for (uint64_t i = lost; i < added; ++i)
    list.push_back(events[i % events.size()]);
  added = 0;
  return lost;
}

Trace::Reading Trace::take() {
  Reading reading;
  for (EventRing &ring : rings)
    reading.lost += ring.take(reading.events);
  std::ranges::sort(reading.events, [](const auto &a, const auto &b) {
    return std::tie(a.begin, a.end, a.lane) < std::tie(b.begin, b.end, b.lane);
  });
  return reading;
}

int64_t runtime::readTraceClock() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}
