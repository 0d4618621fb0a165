//===- RunLogs.h - The logs of a training run -------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_RUNLOGS_H
#define TCC_TOOLS_TCCRUN_RUNLOGS_H

#include "tools/tcc-run/MetricsLog.h"
#include "tools/tcc-run/Options.h"
#include "tools/tcc-run/TensorBoardLog.h"

#include <functional>

namespace tcc::tools {

/// metrics.jsonl, and events for TensorBoard: what of both the options ask for,
/// which is nothing of ranks but the first. A log that a disk has no room for
/// warns, and does not end the run.
class RunLogs {
public:
  using Warn = std::function<void(const runtime::Status &)>;

  explicit RunLogs(Warn warn) : warn(std::move(warn)) {}

  /// The session, which outlives the logs, has the state that the run begins or
  /// `goesOn` with. All ranks make the call. Code::Unsupported for histograms
  /// of parameters of which a rank has a part only.
  runtime::Status open(const TrainOptions &options,
                       runtime::TrainingSession &session, bool goesOn);

  /// The first update after `step` after which `writeParameters` writes.
  int64_t getNextPause(int64_t step) const;

  /// Whether anything is written.
  bool areOpen() const { return hasLogs; }
  /// What the session's last update did, and found in the evaluation after it;
  /// null for none.
  void write(const Pace &pace, const nlohmann::ordered_json &evaluation);
  /// An evaluation alone, after an update that was written; null: nothing.
  void writeAgain(const nlohmann::ordered_json &evaluation);
  /// Whether it is time for `writeParameters` after the session's last update.
  bool areParametersDue() const;
  /// How the parameters lie, and the norms of their gradients, after each K-th
  /// update as the options say. Nothing is under way.
  void writeParameters();
  void close();

private:
  runtime::Status checkParameters() const;
  runtime::Status describeRun(const TrainOptions &options);
  void writeGradientNorms();

  Warn warn;
  runtime::TrainingSession *session = nullptr; ///< once opened
  bool hasLogs = false;
  int64_t histogramsEvery = 0; ///< updates; 0: never
  MetricsLog metrics;
  TensorBoardLog events;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_RUNLOGS_H
