//===- Checkpoints.h - The checkpoints of a training run --------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_CHECKPOINTS_H
#define TCC_TOOLS_TCCRUN_CHECKPOINTS_H

#include "runtime/train/CheckpointFolder.h"
#include "runtime/train/FolderLock.h"
#include "runtime/train/Session.h"

#include <optional>

namespace tcc::tools {

/// Those that one run writes into a folder. All ranks make the same calls.
class Checkpoints {
public:
  /// An empty name: of a run that writes none.
  Checkpoints(std::string folder, const runtime::Retention &retention,
              bool quiet)
      : folder(std::move(folder)), retention(retention), quiet(quiet) {}

  /// Takes the folder for this run, and removes what runs before it left half
  /// written. Fails where another one writes there.
  runtime::Status open(const runtime::TrainingSession &session);

  /// Saves what the session has, unless that was saved before. A disk that is
  /// full may have room later: it is a warning, and all is as before, until
  /// several saves in a row have failed. The last one of a run is tried until
  /// then. What is not to be kept any more is removed.
  runtime::Status save(const runtime::TrainingSession &session, bool isLast);

  /// The path of the one that was written last; empty if none was.
  const std::string &last() const { return path; }

private:
  runtime::Status trySave(const runtime::TrainingSession &session);

  void removeOld(const runtime::TrainingSession &session) const;

  std::string folder;
  runtime::Retention retention;
  bool quiet;
  std::optional<runtime::FolderLock> lock; ///< of rank 0
  std::string path;
  int64_t savedStep = -1; ///< of which `path` is
  int failures = 0;       ///< since then
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_CHECKPOINTS_H
