//===- LaneStreams.h - The lanes of a program on a device -------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_LANESTREAMS_H
#define TCC_RUNTIME_DEVICES_CUDA_LANESTREAMS_H

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/Timeline.h"

#include <vector>

namespace tcc::runtime::cuda {

/// A stream of the driver for each lane, and the events of a program. Lanes of
/// a run begin with it, and are joined to lane 0 in the end: also where a graph
/// is captured, which has to begin and end with one stream. The context is
/// current in all calls.
class LaneStreams {
public:
  explicit LaneStreams(const Driver &driver) : driver(driver) {}
  LaneStreams(const LaneStreams &) = delete;
  LaneStreams &operator=(const LaneStreams &) = delete;

  /// What was made before an error is there for `destroy`.
  Error create(size_t laneCount, size_t eventCount);
  void destroy();

  size_t size() const { return lanes.size(); }
  StreamHandle operator[](uint32_t lane) const { return lanes[lane].stream; }

  /// A run begins, after what lane 0 was given so far. What its lanes do is
  /// added to `newTimeline` until `end`; null if nobody asks.
  Error begin(Timeline *newTimeline);
  /// The run is given whole, and joined.
  void end() { timeline = nullptr; }
  /// The lane is used from now on.
  Error fork(uint32_t lane);
  /// What the lane of the event was given last is the event's command.
  Error trace(const TraceEvent &event) {
    return timeline ? timeline->add(event, lanes[event.lane].stream) : kSuccess;
  }
  /// What lane 0 is given next comes after what all lanes were given.
  Error join();
  Error record(const Mark &mark);
  Error await(const Mark &mark);
  /// Waits for all lanes, whatever became of them.
  void synchronize();

private:
  struct Lane {
    StreamHandle stream = nullptr;
    EventHandle end = nullptr; ///< of what it did in the run
    bool isForked = false;     ///< it is used, and not joined since
  };

  const Driver &driver;
  std::vector<Lane> lanes;
  std::vector<EventHandle> events; ///< of the program
  std::vector<uint32_t> recorders; ///< of each event: its last record
  Timeline *timeline = nullptr;    ///< of the run that is given
  EventHandle begun = nullptr;     ///< where the lanes of the run begin
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_LANESTREAMS_H
