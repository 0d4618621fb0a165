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

/// Events of one ring are in order already.
void Trace::take(Reading &reading) {
  reading.events.clear();
  reading.lost = uploads.take(reading.events);
  size_t fullRings = reading.events.empty() ? 0 : 1;
  for (EventRing &ring : rings) {
    size_t before = reading.events.size();
    reading.lost += ring.take(reading.events);
    fullRings += reading.events.size() > before;
  }
  auto isBefore = [](const TraceEvent &a, const TraceEvent &b) {
    return std::tie(a.begin, a.end, a.lane) < std::tie(b.begin, b.end, b.lane);
  };
  if (fullRings > 1 && !std::ranges::is_sorted(reading.events, isBefore))
    std::ranges::sort(reading.events, isBefore);
}
