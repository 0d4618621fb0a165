//===- Timeline.h - When lanes of a device did what -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_TIMELINE_H
#define TCC_RUNTIME_DEVICES_CUDA_TIMELINE_H

#include "runtime/devices/cuda/Driver.h"
#include "runtime/trace/Trace.h"

#include <vector>

namespace tcc::runtime::cuda {

/// Timed events of the driver around the commands of a run. In a graph they are
/// part of it, so that each replay records them again. The context is current
/// in all calls.
class Timeline {
public:
  explicit Timeline(const Driver &driver) : driver(driver) {}
  ~Timeline();
  Timeline(const Timeline &) = delete;
  Timeline &operator=(const Timeline &) = delete;

  /// A run begins; its lanes record into a graph if one is captured.
  void begin(size_t lanes, bool isCaptured);
  /// What the lane is given next begins here; lane 0 is the first.
  Error beginLane(uint32_t lane, StreamHandle stream);
  /// What the event's lane was given last ends here.
  Error add(const TraceEvent &event, StreamHandle stream);

  /// Once the run is done. It began at `start` by the host's clock; returns
  /// when its last command ended, by the same clock, through `end`.
  Error report(Trace &trace, int64_t start, int64_t &end) const;
  /// Once the run is done: the nanoseconds from a timed event to the run's
  /// begin.
  Error measureSince(EventHandle event, int64_t &nanoseconds) const;

private:
  struct Span {
    TraceEvent event;
    size_t begin, end; ///< of `marks`
  };

  Error mark(StreamHandle stream, size_t &index);

  const Driver &driver;
  bool isCaptured = false;
  std::vector<EventHandle> marks;
  size_t used = 0;          ///< of the marks
  std::vector<size_t> last; ///< of each lane: the mark of its last command
  std::vector<Span> spans;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_TIMELINE_H
