//===- RunLog.h - What metrics.jsonl says of a run --------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_REPORT_RUNLOG_H
#define TCC_TOOLS_TCCRUN_REPORT_RUNLOG_H

#include "runtime/base/Status.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tcc::tools {

/// A line of the log. Not a number is what it does not say, or what was not
/// finite.
struct LoggedUpdate {
  static constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

  int64_t step = 0;
  double loss = kUnknown, rate = kUnknown, gradNorm = kUnknown,
         lossScale = kUnknown;
  double samplesPerSecond = kUnknown, seconds = kUnknown, stall = kUnknown,
         dataWait = kUnknown, exposed = kUnknown, residentBytes = kUnknown;
  double tokensPerSecond = kUnknown, mfu = kUnknown;
  bool isSkipped = false, isSpike = false;
  nlohmann::ordered_json evaluation; ///< null: none came after the update
};

struct RunLog {
  std::vector<LoggedUpdate> updates; ///< by their steps; the last lines of each
  int64_t redone = 0;                ///< lines of updates that had one before
  /// Whether its last line is half written, as processes that are killed leave
  /// it.
  bool isTorn = false;
};

/// Reads a log. Code::Io where there is none; Code::BadData with the line where
/// one is no update's, but for those behind the last one that is.
runtime::Result<RunLog> readRunLog(const std::string &path);

/// A value of all updates that say it: of as many equal stretches as a curve
/// can show, their middle, mean, least and largest value.
struct Curve {
  std::vector<double> x, mean, low, high;
  size_t width = 1; ///< updates of a stretch
};
Curve thin(const RunLog &log, double LoggedUpdate::*value);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_REPORT_RUNLOG_H
