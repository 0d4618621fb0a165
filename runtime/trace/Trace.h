//===- Trace.h - What the lanes of a program did, and when ------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRACE_TRACE_H
#define TCC_RUNTIME_TRACE_TRACE_H

#include "runtime/trace/TraceClock.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcc::runtime {

/// A command that a lane did, or what a device copied for a run beside lanes.
struct TraceEvent {
  static constexpr uint32_t kNone = UINT32_MAX;
  /// The lane of copies of a run's inputs to the device, which are no commands.
  static constexpr uint32_t kUploads = UINT32_MAX;

  int64_t begin = 0, end = 0; ///< nanoseconds of readTraceClock
  uint32_t command = kNone;   ///< its number in the entry
  /// For a wait: the command that recorded what it waited for; else kNone.
  uint32_t cause = kNone;
  int64_t flops = -1; ///< -1: not known, or no launch
  int64_t bytes = -1; ///< read and written, or copied; likewise
  uint32_t lane = 0;
};

/// The last events of one lane, which alone adds to it.
class EventRing {
public:
  explicit EventRing(size_t capacity) : events(capacity) {}

  void add(const TraceEvent &event) {
    events[next] = event;
    next = next + 1 == events.size() ? 0 : next + 1;
    ++added;
  }
  /// Appends those that are there, in the order in which they were added, and
  /// forgets them. Returns how many were lost since the last call.
  uint64_t take(std::vector<TraceEvent> &list);

private:
  std::vector<TraceEvent> events;
  size_t next = 0;    ///< where the next one goes
  uint64_t added = 0; ///< since the last call of `take`
};

/// A ring for each lane. Runs allocate nothing for it; who reads does, between
/// runs that are finished.
class Trace {
public:
  static constexpr size_t kCapacity = 1 << 14; ///< events of a lane

  /// Calibrates the clock.
  explicit Trace(size_t lanes, size_t capacity = kCapacity);

  /// From now on a launch of a host's lane 0 may begin where the one before it
  /// ended: that halves what its event costs, and counts the walk from one to
  /// the other to the second.
  void joinLaunches() { joins = true; }
  bool joinsLaunches() const { return joins; }

  /// Whether nothing is added of runs that begin from now on, which take no
  /// time for it then. While no run is under way.
  void pause(bool newIsPaused) { paused = newIsPaused; }
  bool isPaused() const { return paused; }

  size_t lanes() const { return rings.size(); }
  void add(const TraceEvent &event) {
    EventRing &ring =
        event.lane == TraceEvent::kUploads ? uploads : rings[event.lane];
    ring.add(event);
  }

  struct Reading {
    std::vector<TraceEvent> events; ///< of all lanes, in the order of begins
    uint64_t lost = 0;              ///< older ones that rings had no room for
  };
  /// Takes the events since the last call into a reading, in whose memory they
  /// are if they were before.
  void take(Reading &reading);
  Reading take() {
    Reading reading;
    take(reading);
    return reading;
  }

private:
  std::vector<EventRing> rings;
  EventRing uploads;
  bool joins = false, paused = false;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRACE_TRACE_H
