//===- RunRecord.h - What the folder of a run says of it --------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_RUNRECORD_H
#define TCC_TOOLS_TCCRUN_RUNRECORD_H

#include "runtime/base/Status.h"

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace tcc::runtime {
class TrainingSession;
}

namespace tcc::tools {

/// A process that trained for a run.
struct RunStart {
  std::string time;                 ///< UTC, as 2026-01-31T08:30:00Z
  std::string version;              ///< of tcc
  std::vector<std::string> command; ///< its command line
};

/// DIR/run.json of the run in a folder DIR: how it is gone on with.
struct RunRecord {
  /// Values of the flags of `tcc-run train` by their names, and of PACKAGE.
  /// Files in them are absolute paths.
  std::map<std::string, std::vector<std::string>> flags;
  /// As read; empty if there was no record.
  std::string packagePath, packageDigest;
  std::vector<RunStart> starts; ///< of all its processes, the first one first
  /// As read: what was compiled in of the recipe, and settings by their keys.
  nlohmann::ordered_json recipe, settings;
};

/// Whether there is one.
bool hasRunRecord(const std::string &folder);
/// Code::Io where there is none, Code::BadData where it is another file.
runtime::Result<RunRecord> readRunRecord(const std::string &folder);
/// Writes it, whole or not at all, with the recipe of the session's package and
/// the settings as they are now.
runtime::Status writeRunRecord(const std::string &folder,
                               const RunRecord &record,
                               runtime::TrainingSession &session);

/// The settings that have a value, as they are now: text by key.
runtime::Result<nlohmann::ordered_json>
describeSettings(runtime::TrainingSession &session);

/// Code::Usage where the session's package, at `path`, has other bytes than the
/// one that the run in `folder` began with.
runtime::Status checkPackage(const std::string &folder, const RunRecord &record,
                             const std::string &path,
                             const runtime::TrainingSession &session);

/// Where the run in a folder has its checkpoints, unless a flag says otherwise.
std::string checkpointsOfRun(const std::string &folder);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_RUNRECORD_H
