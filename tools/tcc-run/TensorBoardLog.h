//===- TensorBoardLog.h - What each update did, for TensorBoard -*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TENSORBOARDLOG_H
#define TCC_TOOLS_TCCRUN_TENSORBOARDLOG_H

#include "tools/tcc-run/Events.h"
#include "tools/tcc-run/LogFile.h"
#include "tools/tcc-run/UpdateRecord.h"

#include <set>

namespace tcc::tools {

/// An event file of one process: the values of each update as GROUP/NAME, in
/// one event. Files of a folder are one run, of which updates that are made
/// again have the values that they got last.
class TensorBoardLog {
public:
  /// Begins a file for a process that goes on after `stepCount` updates, behind
  /// all files of the folder: it makes void what they say of later ones, and
  /// all that they say where there was none. Code::Io.
  static runtime::Result<TensorBoardLog> open(const std::string &folder,
                                              int64_t stepCount);
  /// Writes nothing anywhere.
  TensorBoardLog() = default;

  bool isOpen() const { return file.isOpen(); }

  /// Each of these fails as LogFile::add does. A value that no update had as a
  /// number so far is left out where it is none: the package does not have it.
  [[nodiscard]] runtime::Status write(const UpdateRecord &record);
  /// The numbers of an evaluation alone; null: nothing.
  [[nodiscard]] runtime::Status
  writeEvaluation(int64_t step, const nlohmann::ordered_json &evaluation);
  [[nodiscard]] runtime::Status write(int64_t step, const Summary &summary);
  /// Fails where records are lost.
  [[nodiscard]] runtime::Status close() { return file.close(); }

private:
  LogFile file;
  std::string head;                 ///< records before the next one
  int64_t lastStep = 0;             ///< of an update that was written
  std::set<std::string> hadNumbers; ///< tags
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TENSORBOARDLOG_H
