//===- CheckpointFolder.h - Checkpoints side by side ------------*- C++ -*-===//
//
// What a folder ROOT has of checkpoints step-N, by their files alone: no
// session or package is needed.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_TRAIN_CHECKPOINTFOLDER_H
#define TCC_RUNTIME_TRAIN_CHECKPOINTFOLDER_H

#include "runtime/base/Status.h"
#include "runtime/train/Records.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tcc::runtime {

/// The paths of all, also of what is not complete, with the highest N first.
/// Where one was being replaced its older one comes after it.
std::vector<std::string> listCheckpoints(const std::string &root);

/// One of the checkpoints of a folder.
struct CheckpointChoice {
  enum class Kind {
    newest,
    best, ///< by the evaluations of the run that wrote the newest one
    step, ///< the one of update `step`
  };
  Kind kind = Kind::newest;
  int64_t step = 0;
};
/// The paths of those that are meant, the first one before others that stand in
/// for it where it is not complete. Code::Io where there is none of that
/// update, or no evaluation.
Result<std::vector<std::string>>
chooseCheckpoints(const std::string &root, const CheckpointChoice &choice);

/// Code::BadData if not all files of a checkpoint are there, other codes if
/// that cannot be read. Whether their bytes are right only `verifyCheckpoint`
/// knows.
Status checkComplete(const std::string &path);

struct CheckpointSummary {
  int64_t step, updates; ///< updates begun, and those that were applied
  int64_t batches;       ///< of all ranks
  int64_t tensors;
  uint64_t bytes; ///< of these
  std::optional<EvaluationRecord> evaluation;
};
/// Reads all of the checkpoint at `path`, whatever package wrote it:
/// Code::BadData where it is not complete, or has other bytes than were
/// written.
Result<CheckpointSummary> verifyCheckpoint(const std::string &path);

/// What was found in a folder of checkpoints.
struct CheckpointSearch {
  /// The complete one with the highest N, if there is one; also one of another
  /// version, which `restoreCheckpoint` refuses.
  std::optional<std::string> newest;
  /// Why those with a higher N are not complete, or not what was written, the
  /// highest first.
  std::vector<std::string> passedOver;
  bool isAnyDamaged = false; ///< of these: complete, with other bytes
};
/// Fails where a checkpoint is there, but cannot be read.
Result<CheckpointSearch> findNewestCheckpoint(const std::string &root);

/// Removes what processes that ended left half written, and gives a checkpoint
/// that was being replaced its name back. The caller holds the FolderLock.
Status cleanCheckpoints(const std::string &root);

/// Which checkpoints a run keeps.
struct Retention {
  int64_t keepLast = 0;  ///< as many of the newest; 0: all
  int64_t keepEvery = 0; ///< and those whose N is a multiple; 0: none
  /// And the first with the best evaluation by this metric; empty: none.
  std::string keepBest = {};
  bool bestIsLargest = false; ///< of that metric
};
/// Removes all others that are complete. The caller holds the FolderLock.
Status removeOldCheckpoints(const std::string &root,
                            const Retention &retention);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_CHECKPOINTFOLDER_H
