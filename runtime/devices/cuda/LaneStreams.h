//===- LaneStreams.h - The lanes of a program on a device -------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_LANESTREAMS_H
#define TCC_RUNTIME_DEVICES_CUDA_LANESTREAMS_H

#include "runtime/devices/cuda/Driver.h"

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

  /// A run begins, after what lane 0 was given so far.
  Error begin();
  /// The lane is used from now on; `isFirst` tells whether it was not before.
  Error fork(uint32_t lane, bool &isFirst);
  /// What lane 0 is given next comes after what all lanes were given.
  Error join();
  Error record(uint32_t lane, uint32_t event);
  Error await(uint32_t lane, uint32_t event);
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
  EventHandle begun = nullptr;     ///< where the lanes of the run begin
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_LANESTREAMS_H
