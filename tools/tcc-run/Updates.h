//===- Updates.h - Updates, one after the other -----------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_UPDATES_H
#define TCC_TOOLS_TCCRUN_UPDATES_H

#include "tools/tcc-run/Batches.h"
#include "tools/tcc-run/LaunchTimes.h"

#include <deque>

namespace tcc::tools {

/// Makes a session's updates of batches that follow each other. A device works
/// on one step while the next one is read and copied. All ranks make the same
/// calls.
class Updates {
public:
  /// Makes updates of `accumulation` batches at each rank. Session and batches
  /// outlive it.
  Updates(runtime::TrainingSession &session, Batches &batches,
          int64_t accumulation)
      : session(session), batches(batches), accumulation(accumulation),
        begun(session.stepCount()) {}

  /// One update; what comes after it is begun meanwhile, up to update `end`.
  /// An update that fails with Code::Numerics counts as made.
  runtime::Status make(int64_t end);
  /// After the session's state became another one, with nothing under way.
  void beginAgain();
  /// The first update after which nothing need be under way.
  int64_t getNextPause() const { return begun + (accumulated > 0); }

  /// This rank's batches of the update that was made last.
  const std::vector<int64_t> &lastBatches() const { return last; }
  /// Where an update of these batches is first not finite: runs them again,
  /// launch by launch. Empty if that finds nothing. Nothing is under way.
  std::string findNonFinite(const std::vector<int64_t> &numbers);

  /// Batches of an update, of all ranks.
  int64_t batchCount() const { return accumulation * session.rankCount(); }
  /// Samples of the update that was made last, of all ranks: as many of each as
  /// of this one.
  int64_t lastSampleCount() const;
  /// Their positions, if they are sequences.
  std::optional<int64_t> lastTokenCount() const;
  /// Operations of this rank's launches in it, as the compiler counts them.
  double lastFlops() const { return flops; }

  /// Reads from now on what the session's stream writes into `events`: how long
  /// an update waits for other ranks, where there are any, and with `keepsRuns`
  /// what lanes do. What its own thread does is added to `host`, null for none.
  void trace(runtime::Trace &events, bool keepsRuns, runtime::HostTrace *host);
  /// Exposed seconds of the last update (Pace); nothing once events were lost.
  std::optional<double> exposed() const { return waited; }
  /// Runs of the last update, if runs are kept.
  std::span<const TracedRun> tracedRuns() const {
    return std::span(traced).first(tracedCount);
  }

private:
  format::EntryKind nextStep() const;
  runtime::Result<std::optional<runtime::NonFinite>> findIn(int64_t batch,
                                                            int64_t other);
  int64_t findLike(int64_t number) const;
  runtime::Status begin();
  runtime::Status finishStep();
  void noteMade();
  runtime::Status explain(runtime::Status failure);
  void noteTrace();

  runtime::TrainingSession &session;
  Batches &batches;
  int64_t accumulation;
  int64_t begun;             ///< updates, also those under way
  int64_t accumulated = 0;   ///< batches since the last of them
  std::deque<int64_t> given; ///< batches of updates that are not made yet
  std::vector<int64_t> last; ///< of the one that was made last
  runtime::Trace *events = nullptr;
  bool keepsRuns = false;
  runtime::HostTrace *host = nullptr;
  std::vector<TracedRun> traced; ///< the first so many; the others are spare
  size_t tracedCount = 0;
  size_t finished = 0; ///< batches of the update that is made
  double flops = 0;    ///< so far, of that update
  std::optional<double> waited;
  LaunchTimes times; ///< of all updates, while `waited` is known
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_UPDATES_H
