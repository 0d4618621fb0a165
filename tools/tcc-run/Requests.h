//===- Requests.h - What a run is asked while it runs -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_REQUESTS_H
#define TCC_TOOLS_TCCRUN_REQUESTS_H

#include "runtime/ranks/Communicator.h"
#include "tools/tcc-run/Signals.h"

#include <chrono>
#include <optional>
#include <string>

namespace tcc::tools {

/// What signals and the clock ask of a training run, and what the run asks of
/// itself: to end, or to save. Any rank may be asked; all ranks make the same
/// calls, and hear the same.
class Requests {
public:
  /// The clock asks once so many seconds have passed from now on; 0: never.
  explicit Requests(int64_t maxSeconds)
      : maxSeconds(maxSeconds), began(Clock::now()) {}

  /// Takes signals from now on, of all ranks of `ranks`, which outlives it;
  /// null for one rank. Before that nothing is asked.
  void listen(runtime::Communicator *ranks);

  /// Between two units of work, which are updates or batches of an evaluation:
  /// hears what was asked. Several ranks do that a few times a second only, as
  /// each time is a message. Whether they did, and all of them are `ready`.
  runtime::Result<bool> look(bool ready);
  /// The units that come take another time than those before.
  void changeUnits();

  /// Asks for a checkpoint.
  void askToSave() { asked.saves = true; }
  /// Asks for the end, which `reason` outlives.
  void askToEnd(const char *reason) { endsBy = reason; }

  bool ends() const { return asked.stop != 0 || endsBy; }
  bool saves() const { return asked.saves; }
  bool any() const { return ends() || saves(); }
  /// The signal that asked for the end, or 0.
  int stoppedBy() const { return asked.stop; }
  /// What asked for the end: a signal's name, or the reason; empty: nothing.
  std::string describeEnd() const;

  /// A checkpoint is made, or begun.
  void noteSaved() { asked.saves = false; }
  /// The run has come to its end by itself.
  void forgetEnd() { asked.stop = 0, endsBy = nullptr; }

private:
  using Clock = std::chrono::steady_clock;

  bool isTimeUp() const {
    return maxSeconds > 0 &&
           Clock::now() - began >= std::chrono::seconds(maxSeconds);
  }
  int64_t countUnitsToLook();

  int64_t maxSeconds;
  Clock::time_point began;
  std::optional<SignalGuard> signals; ///< nothing: nobody listens
  runtime::Communicator *ranks = nullptr;
  SignalRequest asked; ///< what nothing has answered yet
  const char *endsBy = nullptr;
  int64_t unitsToLook = 0; ///< of several ranks: as each rank counts them
  int64_t unitsSinceLook = 0;
  Clock::time_point looked; ///< when these began
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_REQUESTS_H
