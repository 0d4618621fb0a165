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
  bool isSpike = false; ///< the update will be left out
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
