//===- Rollback.h - Updates whose loss jumps are left out -------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_ROLLBACK_H
#define TCC_TOOLS_TCCRUN_ROLLBACK_H

#include "runtime/train/Session.h"

namespace tcc::tools {

/// What a run does where the loss jumps: what the recipe says, and what the
/// command line changes of it.
struct SpikePlan {
  double z = 0;                ///< deviations; 0: nothing
  int64_t rollbackEvery = 100; ///< updates between two copies of the state

  explicit SpikePlan(const format::Program &program);
  /// Whether KEY of `--set KEY=VALUE` is one of it.
  static bool has(std::string_view key);
  /// Code::Usage if the value is none.
  runtime::Status set(std::string_view key, std::string_view value);
};

/// A spike is an update whose loss is more than `z` deviations above the mean
/// of the last 64 losses, once there are 16 (the rule of llm.c's outlier
/// detector, there with 128). A run then returns to a copy of its state and
/// makes the updates since then again, without the spike's batches. All ranks
/// have the same losses and make the same calls.
class Rollback {
public:
  /// Takes memory for the copy. Code::OutOfMemory where the memory budget has
  /// no room for it. Updates are of `batches` of all ranks. The session
  /// outlives it.
  static runtime::Result<Rollback> open(runtime::TrainingSession &session,
                                        const SpikePlan &plan, int64_t batches);

  /// The first update after `step` that a copy is made after.
  int64_t getNextCopy(int64_t step) const;
  /// Copies the state if it is time, and at first. Between two updates, of
  /// which none is a spike to return from.
  runtime::Status keep();

  /// After each update: whether it is a spike. One that comes after a spike is
  /// not judged.
  bool note(const runtime::StepMetrics &metrics);
  /// Whether the run is to return.
  bool hasSpike() const { return spike.has_value(); }
  /// Returns to the copy, and leaves the spike's batches out from now on. Says
  /// so on stderr unless `quiet`. Code::Numerics where it has returned to this
  /// copy several times before: it is returned to, too. Between two updates.
  runtime::Status goBack(bool quiet);

private:
  struct Spike {
    int64_t step;
    double loss, mean, deviation;
  };

  Rollback(runtime::TrainingSession &session, const SpikePlan &plan,
           int64_t batches)
      : session(&session), plan(plan), batches(batches) {}

  runtime::Status checkRoom() const;
  void leaveOut(int64_t step);

  runtime::TrainingSession *session;
  SpikePlan plan;
  int64_t batches; ///< of an update, of all ranks
  std::optional<Spike> spike;
  std::optional<runtime::Variables::Snapshot> copy;
  int64_t copyStep = 0;  ///< updates before the copy
  int64_t copyBatch = 0; ///< batches before it, without those left out
  std::vector<double> copyLosses;
  std::optional<runtime::EvaluationRecord> copyEvaluations;
  int returns = 0; ///< to this copy
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_ROLLBACK_H
