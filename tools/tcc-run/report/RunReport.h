//===- RunReport.h - What is known of a run, and its page -------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_REPORT_RUNREPORT_H
#define TCC_TOOLS_TCCRUN_REPORT_RUNREPORT_H

#include "tcc/memory_use.h"
#include "tools/report/Page.h"
#include "tools/tcc-run/RunRecord.h"
#include "tools/tcc-run/report/RunLog.h"

namespace tcc::tools {

/// All that the folder of a run has.
struct RunReport {
  std::string folder;
  RunRecord record;
  RunLog log;
  std::string logTime;           ///< UTC at which the log was written last
  nlohmann::ordered_json result; ///< null: no end is recorded

  /// What `tcc-run info --json` says of the package; null, and why, where it is
  /// not there any more.
  nlohmann::ordered_json package;
  std::string packageProblem;
  std::vector<ArenaUse> arenas;

  /// What a part of the result has; null where it was not asked for.
  const nlohmann::ordered_json &find(const char *name) const;
};

/// Sums over the updates of a log. Without the seconds of updates nothing is
/// known of shares.
struct RunTimes {
  double updates = 0, data = 0, ranks = 0, checkpoints = 0;
  double samples = 0, tokens = 0;
  double peak = 0; ///< seconds that the device's peak would have taken
  bool isKnown = false;

  double getAll() const { return updates + checkpoints; }
};
RunTimes sumUp(const RunLog &log);

/// "31 %".
std::string printPercent(double share);

Section describeLoss(const RunReport &run);
Section describeSpeed(const RunReport &run);
Section describeProfile(const RunReport &run);
Section describeDiagnosis(const RunReport &run);
Section describeMemory(const RunReport &run);
Section describeRecord(const RunReport &run);

/// The page. Throws what nlohmann::json does where the result has other types
/// than a run writes.
std::string makeRunPage(const RunReport &run);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_REPORT_RUNREPORT_H
