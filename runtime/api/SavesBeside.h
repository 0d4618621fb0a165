//===- SavesBeside.h - Checkpoints that an embedder begins ------*- C++ -*-===//
#ifndef TCC_RUNTIME_API_SAVESBESIDE_H
#define TCC_RUNTIME_API_SAVESBESIDE_H

#include "runtime/train/Checkpoint.h"
#include "runtime/train/FolderLock.h"

#include <optional>

namespace tcc::runtime {

/// Checkpoints of one session that are written beside its steps, one after the
/// other. Used as the session is; of several ranks all make the same calls.
class SavesBeside {
public:
  /// The session outlives it.
  explicit SavesBeside(TrainingSession &session) : session(session) {}

  /// Begins one, which the folder `root` gets, once the one before has ended;
  /// where that failed nothing is begun, and its failure returned. The folder
  /// is this process's from the first one on until another folder is named.
  Status begin(const std::string &root, const Retention &retention);
  /// Waits for the one under way, if one is.
  void settle();
  /// Waits likewise, and returns the path of the last one, or its failure;
  /// empty where none was begun since the last call.
  Result<std::string> take();

private:
  Status open(const std::string &root, const Retention &retention);

  TrainingSession &session;
  std::string root;
  std::optional<FolderLock> lock; ///< of rank 0
  std::optional<BackgroundSave> background;
  std::string path; ///< of the last one that was written, until it is taken
  Status failure;   ///< likewise of one that failed
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_API_SAVESBESIDE_H
