//===- TraceLog.h - The updates that a trace will have ----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_TRACELOG_H
#define TCC_TOOLS_TCCRUN_TRACE_TRACELOG_H

#include "runtime/trace/HostTrace.h"
#include "runtime/train/Session.h"
#include "tools/tcc-run/trace/PackedEvents.h"
#include "tools/tcc-run/trace/TracedRun.h"

#include <optional>

namespace tcc::tools {

/// A TracedRun that is kept.
struct PackedRun {
  runtime::Context *context;
  PackedEvents events;
  uint64_t lost;
  int64_t batch;
};

/// An update, and all that happened since the one before had ended.
struct TracedUpdate {
  int64_t step;                          ///< which one it is; from 1 on
  int64_t begin, end;                    ///< nanoseconds of readTraceClock
  double loss;                           ///< NaN: not known
  std::optional<uint64_t> residentBytes; ///< of the process, now and then
  std::vector<PackedRun> runs;
  /// What threads of the host did, and where its batches were read before.
  std::vector<runtime::HostSpan> spans;
};

/// Collects the updates of a run. Where they become too many, every Kth is
/// kept, with K a power of 2.
class TraceLog {
public:
  /// Events of lanes and of threads that are kept at most, but those of one
  /// update.
  static constexpr size_t kMostEvents = 1'000'000;

  explicit TraceLog(size_t mostEvents = kMostEvents) : mostEvents(mostEvents) {}

  /// What threads of the host add to; outlived by the log.
  runtime::HostTrace &host() { return hostTrace; }

  /// The first update begins.
  void begin();
  /// Whether `add` looks at the runs of the update that begins: it may be kept.
  bool keepsNext() const { return count % stride == 0; }
  /// One has ended, and the next one begins.
  void add(const runtime::StepMetrics &metrics,
           std::span<const TracedRun> runs);
  /// Nothing follows. What threads did since the last update becomes its own.
  void end();

  const std::vector<TracedUpdate> &updates() const { return kept; }
  TracedRun unpack(const PackedRun &run) const;
  /// K.
  int64_t every() const { return stride; }

private:
  static size_t countEvents(const TracedUpdate &update);
  void takeSpans(TracedUpdate &update, std::span<const TracedRun> runs);
  void thinOut();

  size_t mostEvents;
  runtime::HostTrace hostTrace;
  EventPacker packer;
  std::vector<TracedUpdate> kept;
  /// Where batches of updates to come were read.
  std::vector<runtime::HostSpan> readAhead;
  std::vector<runtime::HostSpan> taken; ///< of the update that is added
  int64_t stride = 1;
  int64_t count = 0; ///< updates so far
  size_t events = 0; ///< of those that are kept
  int64_t lastEnd = 0, lastSample = 0;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_TRACELOG_H
