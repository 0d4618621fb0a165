//===- MetricsLog.h - What each update did, in a file -----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_METRICSLOG_H
#define TCC_TOOLS_TCCRUN_METRICSLOG_H

#include "tools/tcc-run/LogFile.h"
#include "tools/tcc-run/UpdateRecord.h"

namespace tcc::tools {

/// metrics.jsonl: one line for each update.
class MetricsLog {
public:
  /// Opens the log. A run that `goesOn` adds to the lines there, but for what a
  /// process that was killed left half written. Another run's file gets the
  /// first name metrics.N.jsonl that is free. Code::Io.
  static runtime::Result<MetricsLog> open(const std::string &folder,
                                          bool goesOn);
  /// Writes nothing anywhere.
  MetricsLog() = default;

  /// Fails as LogFile::add does.
  [[nodiscard]] runtime::Status write(const UpdateRecord &record);
  /// The same of an evaluation alone, after a step that has a line without
  /// one. Null: nothing.
  [[nodiscard]] runtime::Status
  writeAgain(int64_t step, const nlohmann::ordered_json &evaluation);
  /// Fails where lines are lost.
  [[nodiscard]] runtime::Status close() { return file.close(); }

private:
  runtime::Status goOn();

  LogFile file;
  int64_t lastStep = 0; ///< that has a line: up to it updates are made again
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_METRICSLOG_H
