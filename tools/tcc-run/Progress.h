//===- Progress.h - What a training run says of itself ----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_PROGRESS_H
#define TCC_TOOLS_TCCRUN_PROGRESS_H

#include "runtime/train/Session.h"

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>

namespace tcc::tools {

/// How fast updates are.
struct Pace {
  double samplesPerSecond = 0;
  /// Seconds that the ranks' communication kept others waiting, as not hidden
  /// behind what is computed; nothing for one rank.
  std::optional<double> exposed = {};
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

/// metrics.jsonl: one line for each update.
class MetricsLog {
public:
  /// Appends to the file of a run that goes on; lines from step `first` on are
  /// of updates that were lost and are dropped.
  static runtime::Result<MetricsLog> open(const std::string &folder,
                                          int64_t first);
  /// Writes nothing anywhere.
  MetricsLog() = default;

  /// `evaluation` of what came after the update, null for none.
  void write(const runtime::StepMetrics &metrics, const Pace &pace,
             const nlohmann::ordered_json &evaluation);
  [[nodiscard]] runtime::Status close();

private:
  std::string path;
  std::ofstream file;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_PROGRESS_H
