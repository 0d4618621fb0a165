//===- StepProfile.h - Where the time of updates goes -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_STEPPROFILE_H
#define TCC_TOOLS_TCCRUN_STEPPROFILE_H

#include "tools/tcc-run/Profile.h"
#include "tools/tcc-run/Progress.h"

#include <span>

namespace tcc::tools {

/// `train --profile`: what an update takes on average, in parts that add up to
/// it. A device that works while the host does something else is busy then: the
/// parts of the host are what it waited for.
class StepProfile {
public:
  /// Begins with the first of so many updates, of which some are not counted
  /// where there are more: they touch memory and fill caches.
  explicit StepProfile(int64_t count);

  /// Ends an update, whose runs were traced.
  void add(std::span<const TracedRun> runs, const Pace &pace);
  /// An evaluation took some of the time of the update that ends next.
  void addEvaluation(double seconds) { evaluation += seconds; }

  /// The session has made the updates.
  void print(runtime::TrainingSession &session) const;
  nlohmann::ordered_json describe(runtime::TrainingSession &session) const;

private:
  struct Part {
    std::string name;
    double seconds; ///< of all updates
  };
  std::vector<Part> listParts() const;
  Profile makeProfile(const runtime::Context &context) const;

  int64_t warmup; ///< updates that are still not counted
  size_t updates = 0;
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
