//===- LaunchTimes.h - What the commands of entries took --------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_LAUNCHTIMES_H
#define TCC_TOOLS_TCCRUN_LAUNCHTIMES_H

#include "runtime/package/Names.h"
#include "tools/tcc-run/trace/TracedRun.h"

#include <map>
#include <unordered_map>
#include <vector>

namespace tcc::tools {

/// What one launch of a program did in some runs.
struct LaunchTime {
  const format::Launch *launch = nullptr;
  uint64_t calls = 0;
  int64_t nanoseconds = 0;
  int64_t flops = 0; ///< as the compiler counts them
  int64_t bytes = 0; ///< read and written, likewise
  /// Nanoseconds that the compiler's cost model expects of a typical machine of
  /// the target; 0: the package does not tell its figures.
  double predicted = 0;
};

/// Where lane 0, which begins with a run and ends with it, spent some runs.
struct LaneTimes {
  int64_t phases[size_t(format::Phase::MAX) + 1] =
      {};                    ///< nanoseconds of launches
  int64_t copies = 0;        ///< its own, and waiting for those of other lanes
  int64_t uploads = 0;       ///< waiting for inputs of a device
  int64_t communication = 0; ///< likewise: exposed, not hidden behind others
  int64_t otherLanes = 0;    ///< waiting for launches of other lanes

  int64_t sum() const;
};

/// Sums over traced runs of a program, by command.
class LaunchTimes {
public:
  void add(const TracedRun &run);

  /// Events of runs that were not there to be added.
  uint64_t lost() const { return lostEvents; }
  const LaneTimes &lane() const { return times; }
  /// Nanoseconds that inputs took to a device, hidden behind launches or not.
  int64_t uploads() const { return uploaded; }
  /// The launches, most expensive first.
  std::vector<LaunchTime> list() const;

private:
  struct Sum {
    uint64_t calls = 0;
    int64_t nanoseconds = 0, flops = 0, bytes = 0;
  };
  struct EntrySums {
    const runtime::Walker *walker = nullptr; ///< of any of its contexts
    std::vector<Sum> commands;               ///< by their numbers
    /// What commands that record events come after on their lanes.
    std::unordered_map<uint32_t, const format::Command *> recorded;
  };
  int64_t &findAccount(EntrySums &sums, const runtime::TraceEvent &event);
  void addUpload(const runtime::TraceEvent &event);

  const format::Program *program = nullptr; ///< once there are runs
  std::map<const format::Entry *, EntrySums> entries;
  LaneTimes times;
  int64_t uploaded = 0;
  int64_t lastEnd = INT64_MIN; ///< of lane 0, by the clock of traces
  uint64_t lostEvents = 0;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_LAUNCHTIMES_H
