//===- Training.h - One run of `tcc-run train` ------------------*- C++ -*-===//
//
// Train.cpp has its begin and its end, TrainSteps.cpp the updates between.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_TRAINING_H
#define TCC_TOOLS_TCCRUN_TRAINING_H

#include "tools/tcc-run/Checkpoints.h"
#include "tools/tcc-run/Evaluations.h"
#include "tools/tcc-run/Peak.h"
#include "tools/tcc-run/Plans.h"
#include "tools/tcc-run/Progress.h"
#include "tools/tcc-run/Ranks.h"
#include "tools/tcc-run/Requests.h"
#include "tools/tcc-run/Rollback.h"
#include "tools/tcc-run/RunLogs.h"
#include "tools/tcc-run/SkippedUpdates.h"
#include "tools/tcc-run/StepProfile.h"
#include "tools/tcc-run/Updates.h"
#include "tools/tcc-run/trace/TraceLog.h"

namespace tcc::tools {

/// One run of `tcc-run train`.
class Training {
public:
  /// The ranks outlive it.
  Training(const TrainOptions &options, const Ranks &ranks)
      : options(options), ranks(ranks),
        traceLog(options.traceFile.empty() ? nullptr
                                           : std::make_unique<TraceLog>()),
        checkpoints(options.running.quiet, host()),
        logs([this](const runtime::Status &status) { warn(status); }),
        requests(options.maxSeconds) {}

  runtime::Status run();
  /// Writes result.json beside the log: how the run ended, and what was found.
  void recordEnd(const runtime::Status &status) const;
  /// The signal that ended it before its time, or 0.
  int stoppedBy() const { return requests.stoppedBy(); }

private:
  using Clock = std::chrono::steady_clock;

  bool goesOn() const { return options.resume || options.resumesIfAny; }
  runtime::Status checkRun() const;
  runtime::Status recordRun();
  runtime::Status resume();
  runtime::Status setSeed();
  runtime::Status chooseLength();
  runtime::Status compareRanks() const;
  runtime::Status trainSteps();
  runtime::Status readPlans();
  SavingOptions makeSavingOptions() const;
  bool isSaveDue(int64_t step) const;
  int64_t getNextPause(int64_t step) const;
  runtime::Result<bool> runEvaluation();
  runtime::Status evaluate();
  runtime::Status evaluateIfMissed();
  runtime::Result<bool> answerBetween();
  runtime::Status look();
  void warn(const runtime::Status &status) const;
  void sayWhatIsLost() const;
  runtime::HostTrace *host() { return traceLog ? &traceLog->host() : nullptr; }
  runtime::Status beginTrace();
  runtime::Status writeTraceFile();
  runtime::Status beginLogs();
  Pace note(ProgressLine &line, Clock::time_point before);
  Pace averageSoFar() const;
  std::optional<uint64_t> readMemory() const;
  void writeLog(const nlohmann::ordered_json &evaluation);
  void writeParameters();
  void explainSkipped();
  runtime::Status returnFromSpike(int64_t &step);
  runtime::Status end(runtime::Status trained);
  runtime::Status keepResult();
  void printEnd() const;
  void endProfile();
  nlohmann::ordered_json describeResult() const;
  void addFindings(nlohmann::ordered_json &document, bool profiles,
                   bool diagnoses) const;
  void printResult() const;
  void noteEnd() const;
  nlohmann::ordered_json describeEnd(const runtime::Status &status) const;

  const TrainOptions &options;
  const Ranks &ranks;
  std::optional<runtime::Trace> trace; ///< outlives the session
  std::unique_ptr<TraceLog> traceLog;  ///< likewise; null without --trace
  bool mayPauseTrace = false;          ///< in updates that the log leaves out
  std::unique_ptr<runtime::TrainingSession> session;
  Checkpoints checkpoints; ///< of the session
  std::optional<Batches> batches;
  RunLogs logs;
  std::optional<Pace> unlogged; ///< of the last update, until it has a line
  std::optional<Updates> updates;
  std::optional<SkippedUpdates> skipped;
  std::optional<Rollback> rollback;
  std::optional<Plans> plans; ///< once the session is open
  std::optional<Evaluations> evaluations;
  int64_t firstStep = 0, lastStep = 0;
  bool isLogged = false; ///< from when on result.json is this process's
  PaceSum paces;
  std::optional<Peak> peak;           ///< once the session is open
  std::optional<StepProfile> profile; ///< of a run that is looked at
  std::optional<Diagnosis> diagnosis; ///< likewise, at its end
  Requests requests; ///< heard where there is something to keep
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRAINING_H
