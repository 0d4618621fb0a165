//===- MetricsLog.h - What each update did, in a file -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_METRICSLOG_H
#define TCC_TOOLS_TCCRUN_METRICSLOG_H

#include "runtime/train/Session.h"
#include "tools/tcc-run/Progress.h"

#include <nlohmann/json.hpp>
#include <string>

namespace tcc::tools {

/// metrics.jsonl: one line for each update, which the system has once it was
/// made, and which nothing changes after that. A disk that is full may have
/// room later: what it does not take is kept, up to a limit, and written before
/// the next line.
class MetricsLog {
public:
  /// Opens the log. A run that `goesOn` adds to the lines there, but for what a
  /// process that was killed left half written. Another run's file gets the
  /// first name metrics.N.jsonl that is free. Code::Io.
  static runtime::Result<MetricsLog> open(const std::string &folder,
                                          bool goesOn);
  /// Writes nothing anywhere.
  MetricsLog() = default;
  MetricsLog(MetricsLog &&other) noexcept { *this = std::move(other); }
  MetricsLog &operator=(MetricsLog &&other) noexcept;
  ~MetricsLog();

  /// `evaluation` of what came after the update, null for none. Fails where the
  /// disk does not take it, but not again until it has taken a line: the log
  /// can be used as before.
  [[nodiscard]] runtime::Status write(const runtime::StepMetrics &metrics,
                                      const Pace &pace,
                                      const nlohmann::ordered_json &evaluation);
  /// The same of an evaluation alone, after a step that has a line without
  /// one. Null: nothing.
  [[nodiscard]] runtime::Status
  writeAgain(int64_t step, const nlohmann::ordered_json &evaluation);
  /// Fails where lines are lost.
  [[nodiscard]] runtime::Status close();

private:
  runtime::Status goOn();
  nlohmann::ordered_json
  describe(const runtime::StepMetrics &metrics, const Pace &pace,
           const nlohmann::ordered_json &evaluation) const;
  runtime::Status write(const nlohmann::ordered_json &row);
  void writeRest();

  std::string path;
  int file = -1;
  int64_t lastStep = 0; ///< that has a line: up to it updates are made again
  std::string rest;     ///< what the file lacks
  int64_t dropped = 0;  ///< lines that are not in `rest`
  int failure = 0;      ///< errno of the last write
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_METRICSLOG_H
