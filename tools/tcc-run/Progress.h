//===- Progress.h - How far a training run has come ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PROGRESS_H
#define TCC_TOOLS_TCCRUN_PROGRESS_H

#include "runtime/train/Session.h"

#include <chrono>
#include <optional>

namespace tcc::tools {

/// How fast updates are.
struct Pace {
  double samplesPerSecond = 0;
  /// Seconds that the ranks' communication kept others waiting, as not hidden
  /// behind what is computed; nothing for one rank.
  std::optional<double> exposed = {};
  double stall = 0;     ///< seconds that training waited for checkpoints
  double dataWait = 0;  ///< seconds that the update waited for its batches
  double seconds = 0;   ///< of the update
  bool isSpike = false; ///< the update will be left out
};

/// What the updates of a run took together.
class PaceSum {
public:
  /// An update that took so many seconds.
  void add(const Pace &pace, double seconds);
  /// Samples a second of all; waits of an update, 0 without one. Nothing is
  /// known of other ranks once an update did not know.
  Pace average() const;
  /// "3 % of the time waiting for data": what is worth a word, or "".
  std::string describeWaits() const;

private:
  int64_t count = 0;
  double seconds = 0, samples = 0, dataWait = 0;
  std::optional<double> exposed = 0;
};

/// A line with the time that is left, on a terminal only, at most a few times
/// a second.
class ProgressLine {
public:
  ProgressLine(int64_t first, int64_t last, bool isQuiet);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  /// `average` is of all updates so far, with `exposed` of one of them.
  void update(const runtime::StepMetrics &metrics, const Pace &average);
  /// Makes room for other lines.
  void clear();

private:
  using Clock = std::chrono::steady_clock;

  int64_t first, last;
  bool isShown;
  Clock::time_point start = Clock::now();
  Clock::time_point shown = {};
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PROGRESS_H
