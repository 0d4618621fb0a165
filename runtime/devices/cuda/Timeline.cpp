#include "runtime/devices/cuda/Timeline.h"

#include <algorithm>

using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

Timeline::~Timeline() {
  for (EventHandle mark : marks)
    driver.eventDestroy(mark);
}

void Timeline::begin(size_t lanes, bool captures) {
  isCaptured = captures;
  used = 0;
  last.assign(lanes, 0);
  spans.clear();
}

Error Timeline::mark(StreamHandle stream, size_t &index) {
  if (used == marks.size()) {
    EventHandle created = nullptr;
    if (Error error = driver.eventCreate(&created, /*flags=*/0);
        error != kSuccess)
      return error;
    marks.push_back(created);
  }
  index = used++;
  return isCaptured ? driver.eventRecordWithFlags(marks[index], stream,
                                                  kRecordExternal)
                    : driver.eventRecord(marks[index], stream);
}

Error Timeline::beginLane(uint32_t lane, StreamHandle stream) {
  return mark(stream, last[lane]);
}

Error Timeline::add(const TraceEvent &event, StreamHandle stream) {
  size_t begin = last[event.lane];
  Error error = mark(stream, last[event.lane]);
  spans.push_back({event, begin, last[event.lane]});
  return error;
}

Error Timeline::report(Trace &trace, int64_t start, int64_t &end) const {
  end = start;
  auto timeOf = [&](size_t mark, int64_t &time) {
    float milliseconds = 0;
    Error error = driver.eventElapsedTime(&milliseconds, marks[0], marks[mark]);
    time = start + static_cast<int64_t>(milliseconds * 1e6);
    return error;
  };
  for (const Span &span : spans) {
    TraceEvent event = span.event;
    Error error = timeOf(span.begin, event.begin);
    if (error == kSuccess)
      error = timeOf(span.end, event.end);
    if (error != kSuccess)
      return error;
    trace.add(event);
    end = std::max(end, event.end);
  }
  return kSuccess;
}

Error Timeline::measureSince(EventHandle event, int64_t &nanoseconds) const {
  float milliseconds = 0;
  Error error = driver.eventElapsedTime(&milliseconds, event, marks[0]);
  nanoseconds = static_cast<int64_t>(milliseconds * 1e6);
  return error;
}
