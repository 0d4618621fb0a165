//===- Progress.h - What a training run says of itself ----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PROGRESS_H
#define TCC_TOOLS_TCCRUN_PROGRESS_H

#include "runtime/train/Session.h"

#include <chrono>
#include <fstream>

namespace tcc::tools {

/// A line with the time that is left, on a terminal only, at most a few times
/// a second.
class ProgressLine {
public:
  ProgressLine(int64_t first, int64_t last, bool isQuiet);
  ~ProgressLine() { clear(); }
  ProgressLine(const ProgressLine &) = delete;
  ProgressLine &operator=(const ProgressLine &) = delete;

  void update(const runtime::StepMetrics &metrics, double samplesPerSecond);
  /// Makes room for other lines.
  void clear();

private:
  using Clock = std::chrono::steady_clock;

  int64_t first, last;
  bool isShown;
  Clock::time_point start = Clock::now();
  Clock::time_point shown = {};
};

/// metrics.jsonl: one line for each update.
class MetricsLog {
public:
  /// Appends to the file of a run that goes on; lines from step `first` on are
  /// of updates that were lost and are dropped.
  static runtime::Result<MetricsLog> open(const std::string &folder,
                                          int64_t first);
  /// Writes nothing anywhere.
  MetricsLog() = default;

  void write(const runtime::StepMetrics &metrics, double samplesPerSecond);
  [[nodiscard]] runtime::Status close();

private:
  std::string path;
  std::ofstream file;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PROGRESS_H
