//===- EventWriter.h - Writes trace events to a file ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRACE_EVENTWRITER_H
#define TCC_TOOLS_TCCRUN_TRACE_EVENTWRITER_H

#include "runtime/base/OutputFile.h"

#include <nlohmann/json.hpp>

#include <optional>

namespace tcc::tools {

/// A point of a flow, which viewers draw as an arrow from slice to slice.
enum class FlowPoint { Start, Step, End };

/// What a file says of all its events.
struct TraceSummary {
  std::optional<int> rank; ///< nothing: of several
  uint64_t lost;           ///< commands that there was no room for
  int64_t every;           ///< every how many updates one is kept
  int ranks;               ///< of the run
};

/// Writes trace events as they are given, each in a line: a file of many needs
/// no memory for them. Times are nanoseconds. What slices of a track lie within
/// others come after them.
class EventWriter {
public:
  /// The first line, and how the last one begins, of any file.
  static constexpr char kBegin[] = "{\"traceEvents\":[", kEnd[] = "],";

  /// Times in the file count from `start`.
  static runtime::Result<EventWriter> create(const std::string &path,
                                             int64_t start);

  /// What comes is of a rank's process, which has the rank's number.
  void beginRank(int newRank);
  /// Tracks are shown in the order of `order`.
  void nameTrack(uint32_t track, const std::string &name, uint32_t order);
  /// `event` has a name and a category, and maybe arguments.
  void slice(uint32_t track, int64_t begin, int64_t end,
             nlohmann::ordered_json event);
  /// A value that is not finite is left out.
  void counter(const char *name, int64_t time, double value);
  /// A point in the innermost slice that the track has then.
  void flow(FlowPoint point, int64_t id, uint32_t track, int64_t time);
  /// An event as it is.
  void put(const nlohmann::ordered_json &event);
  /// An error if some of it could not be written.
  runtime::Status close(const TraceSummary &summary);

private:
  EventWriter(runtime::OutputFile file, int64_t start)
      : file(std::move(file)), start(start) {}

  double sinceStart(int64_t time) const { return double(time - start) / 1e3; }

  runtime::OutputFile file;
  std::string text; ///< that is not in the file yet
  int64_t start;
  int rank = 0;
  bool isFirst = true;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRACE_EVENTWRITER_H
