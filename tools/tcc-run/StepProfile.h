//===- StepProfile.h - Where the time of updates goes -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_STEPPROFILE_H
#define TCC_TOOLS_TCCRUN_STEPPROFILE_H

#include "tools/tcc-run/Batches.h"
#include "tools/tcc-run/Profile.h"
#include "tools/tcc-run/Progress.h"
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
  StepProfile(int64_t count, const Batches &batches);

  /// Ends an update, whose runs were traced.
  void add(std::span<const TracedRun> runs, const Pace &pace, bool isSkipped);
  /// After the last update, on the thread that made them.
  void end();
  /// An evaluation took some of the time of the update that ends next.
  void addEvaluation(double seconds) { evaluation += seconds; }

  /// The session has made the updates.
  void print(runtime::TrainingSession &session) const;
  nlohmann::ordered_json describe(runtime::TrainingSession &session) const;
  /// What limits the updates; some were made.
  RunFigures measure(runtime::TrainingSession &session) const;
  bool isEmpty() const { return updates == 0; }

private:
  struct Part {
    std::string name;
    double seconds; ///< of all updates
  };
  /// What threads did since they began.
  struct Clocks {
    ThreadTimes thread; ///< that makes updates
    runtime::ReadingTime reading;
  };
  Clocks readClocks() const;
  std::vector<Part> listParts() const;
  double partOf(std::string_view name) const;
  Profile makeProfile(const runtime::Context &context) const;

  const Batches &batches;
  int64_t warmup; ///< updates that are still not counted
  Clocks begun, ended;
  size_t updates = 0, skipped = 0;
  LaunchTimes launches;
  std::chrono::steady_clock::time_point lastEnd;
  double evaluation = 0; ///< seconds since `lastEnd`
  /// Seconds of all updates, each from the end of the one before.
  struct {
    double all = 0, data = 0, checkpoints = 0, evaluations = 0;
  } sum;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_STEPPROFILE_H
