//===- HostTrace.h - What threads of the host did, and when -----*- C++ -*-===//
#ifndef TCC_RUNTIME_TRACE_HOSTTRACE_H
#define TCC_RUNTIME_TRACE_HOSTTRACE_H

#include "runtime/trace/TraceClock.h"

#include <cstdint>
#include <mutex>
#include <vector>

namespace tcc::runtime {

/// What a thread of the host does for training beside the commands of programs.
enum class HostWork : uint8_t {
  AwaitBatch,        ///< until the batch is read
  ReadSamples,       ///< some of a batch
  MixSamples,        ///< those of a batch
  GiveStep,          ///< to the device; a host does it meanwhile
  AwaitStep,         ///< until the device has done it
  Evaluate,          ///< all batches of an evaluation
  WriteLogs,         ///< of an update
  AwaitCheckpoint,   ///< what of a checkpoint updates wait for
  WriteCheckpoint,   ///< the files of a rank
  PublishCheckpoint, ///< its manifest and its name
};

/// The tracks of a trace of the host, one for each thread.
enum HostTrack : uint32_t {
  kUpdateTrack = 0, ///< of the thread that makes updates
  kCheckpointTrack, ///< of the one that writes checkpoints
  kFirstWorkerTrack ///< of a loader's first worker; the others follow
};

/// One thing that a thread did.
struct HostSpan {
  HostWork work;
  uint32_t track;     ///< a HostTrack
  int64_t begin, end; ///< nanoseconds of readTraceClock
  int64_t batch = -1; ///< the number of the batch that it is of; -1: none
};

/// Spans of all threads, until they are taken. Any thread may make any call.
class HostTrace {
public:
  /// Calibrates the clock.
  HostTrace() { calibrateTraceClock(); }

  void add(const HostSpan &span) {
    std::lock_guard lock(mutex);
    spans.push_back(span);
  }
  /// The spans that ended since the last call, in the order of their ends. They
  /// take the place of those in `taken`, whose memory is used again.
  void take(std::vector<HostSpan> &taken) {
    taken.clear();
    std::lock_guard lock(mutex);
    spans.swap(taken);
  }

private:
  std::mutex mutex;
  std::vector<HostSpan> spans;
};

/// Adds what its thread does while it lives to a trace.
class HostTimer {
public:
  /// The trace, null for none, outlives it.
  HostTimer(HostTrace *trace, HostWork work, uint32_t track = kUpdateTrack,
            int64_t batch = -1)
      : trace(trace), span{work, track, readTraceClock(), 0, batch} {}
  ~HostTimer() {
    if (!trace)
      return;
    span.end = readTraceClock();
    trace->add(span);
  }
  HostTimer(const HostTimer &) = delete;
  HostTimer &operator=(const HostTimer &) = delete;

  /// Seconds of its life so far.
  double seconds() const { return double(readTraceClock() - span.begin) / 1e9; }

private:
  HostTrace *trace;
  HostSpan span;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRACE_HOSTTRACE_H
