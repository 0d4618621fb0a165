//===- StepProfile.h - Where the time of updates goes -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_STEPPROFILE_H
#define TCC_TOOLS_TCCRUN_STEPPROFILE_H

#include "tools/tcc-run/Batches.h"
#include "tools/tcc-run/Pace.h"
#include "tools/tcc-run/Profile.h"
#include "tools/tcc-run/diagnosis/Diagnosis.h"
#include "tools/tcc-run/diagnosis/ThreadTimes.h"

#include <span>

namespace tcc::tools {

/// `train --profile` and `--diagnose`: what an update takes on average, in
/// parts that add up to it. A device that works while the host does something
/// else is busy then: the parts of the host are what it waited for.
class StepProfile {
public:
  /// Begins with the first of so many updates, of which some are not counted
  /// where there are more: they touch memory and fill caches.
  /// The batches are those of the updates, and outlive it.
  StepProfile(int64_t count, Batches &batches);

  /// Ends an update, whose runs were traced.
  void add(std::span<const TracedRun> runs, const Pace &pace, bool isSkipped);
  /// What took some of the time of the update that ends next: an evaluation,
  /// and writing logs.
  void addEvaluation(double seconds) { evaluation += seconds; }
  void addLogs(double seconds) { logs += seconds; }
  /// After the last update that `session` makes, on the thread that made them.
  void end(runtime::TrainingSession &session);

  // What was found, after the end; the session lives.
  void print() const;
  nlohmann::ordered_json describe() const;
  /// What limits the updates, of which there is one at least. The process may
  /// use so many CPUs.
  RunFigures measure(int cpus) const;
  bool isEmpty() const { return updates == 0; }

private:
  struct Part {
    std::string name;
    double seconds; ///< of all updates
  };
  /// What threads did since they began.
  struct Clocks {
    std::optional<ThreadTimes> thread; ///< that makes updates
    std::string problem;               ///< why its times are not known
    runtime::ReadingTime reading;
  };
  Clocks readClocks() const;
  void addThreadTimes(RunFigures &figures) const;
  std::vector<Part> listParts() const;
  double partOf(std::string_view name) const;

  const Batches &batches;
  int64_t warmup; ///< updates that are still not counted
  Clocks begun, ended;
  size_t updates = 0, skipped = 0;
  LaunchTimes launches;
  Profile profile;                           ///< of the end
  const runtime::Context *context = nullptr; ///< of the last update
  std::chrono::steady_clock::time_point lastEnd;
  double evaluation = 0, logs = 0; ///< seconds since `lastEnd`
  /// Seconds of all updates, each from the end of the one before; by the clock
  /// of a device that is ahead of the host's, as an emulated one's may be, in
  /// the end.
  struct {
    double all = 0, data = 0, checkpoints = 0, evaluations = 0, logs = 0;
  } sum;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_STEPPROFILE_H
