//===- Progress.h - How far a training run has come ------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PROGRESS_H
#define TCC_TOOLS_TCCRUN_PROGRESS_H

#include "runtime/train/Session.h"
#include "tools/tcc-run/Pace.h"

#include <chrono>
#include <cstdio>
#include <optional>

namespace tcc::tools {

/// How far a run has come.
struct Progress {
  int64_t last = 0; ///< update that the run is to make
  runtime::StepMetrics metrics;
  Pace average = {};                  ///< of all updates so far
  std::optional<uint64_t> bytes = {}; ///< in memory, of the process or a device
  double left = 0;                    ///< seconds, as far as updates tell
};

/// One line of at most `width` characters, which lacks the figures that matter
/// least where not all fit.
std::string describe(const Progress &progress, size_t width = SIZE_MAX);

/// When a log that nobody may watch gets a line: a run that ends in seconds
/// writes none, one of days some hundreds.
class PlainTimes {
public:
  /// After so many seconds of a run.
  bool isDue(double elapsed) const { return elapsed >= next; }
  /// A line was written then.
  void note(double elapsed);

private:
  static constexpr double kFirst = 10, kLongest = 600, kGrowth = 0.1;

  double next = kFirst;
};

/// Says how far a run has come: in a terminal on one line that it writes again,
/// elsewhere on a line of its own now and then.
class ProgressLine {
public:
  enum class Style { None, Plain, Terminal };
  using Clock = std::chrono::steady_clock;

  /// A line on stderr, unless `isQuiet`, of updates after `first`, up to
  /// `last`, which begin now.
  ProgressLine(int64_t first, int64_t last, bool isQuiet);
  /// A line of updates that began at `start`.
  ProgressLine(int64_t first, int64_t last, Style style, std::FILE *file,
               Clock::time_point start)
      : first(first), last(last), style(style), file(file), start(start) {}
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  /// Whether `show` should be called.
  bool isDue(Clock::time_point now) const;
  void show(const runtime::StepMetrics &metrics, const Pace &average,
            std::optional<uint64_t> bytes, Clock::time_point now);
  /// Makes room for other lines.
  void clear();

private:
  int64_t first, last;
  Style style;
  std::FILE *file;
  Clock::time_point start;
  std::optional<Clock::time_point> shown; ///< a terminal has the line
  PlainTimes times;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PROGRESS_H
