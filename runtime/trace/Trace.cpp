#include "runtime/trace/Trace.h"

#include <algorithm>
#include <tuple>

using namespace tcc;
using namespace tcc::runtime;

uint64_t EventRing::take(std::vector<TraceEvent> &list) {
  size_t count = std::min<uint64_t>(added, events.size());
  uint64_t lost = added - count;
  list.reserve(list.size() + count);
  size_t wrapped = count > next ? count - next : 0; // before the ring's end
  list.insert(list.end(), events.end() - ptrdiff_t(wrapped), events.end());
  list.insert(list.end(), events.begin() + ptrdiff_t(next - (count - wrapped)),
              events.begin() + ptrdiff_t(next));
  // The part that is in caches is used again.
  next = 0;
  added = 0;
  return lost;
}

Trace::Trace(size_t lanes, size_t capacity)
    : rings(lanes, EventRing(capacity)), uploads(capacity) {
  calibrateTraceClock();
}

Trace::Reading Trace::take() {
  Reading reading;
  for (EventRing &ring : rings)
    reading.lost += ring.take(reading.events);
  reading.lost += uploads.take(reading.events);
  auto isBefore = [](const TraceEvent &a, const TraceEvent &b) {
    return std::tie(a.begin, a.end, a.lane) < std::tie(b.begin, b.end, b.lane);
  };
  // Events of one lane are in order already.
  if (!std::ranges::is_sorted(reading.events, isBefore))
    std::ranges::sort(reading.events, isBefore);
  return reading;
}
