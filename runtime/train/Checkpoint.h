//===- Checkpoint.h - Sessions in files -------------------------*- C++ -*-===//
//
// A checkpoint is a folder ROOT/step-N with state.safetensors, all variables
// under their names, and manifest.json. It appears whole or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_TRAIN_CHECKPOINT_H
#define TCC_RUNTIME_TRAIN_CHECKPOINT_H

#include "runtime/train/Session.h"

namespace tcc::runtime {

/// Writes ROOT/step-N, N updates so far, and returns its path. One of that name
/// is replaced.
Result<std::string> saveCheckpoint(const TrainingSession &session,
                                   const std::string &root);

/// Restores the checkpoint at `path`. It must have exactly the variables of the
/// session: all that is missing, unexpected or of another type is listed, and
/// nothing is changed then. Of several ranks the first one restores, then all
/// share its variables.
Status restoreCheckpoint(TrainingSession &session, const std::string &path);

/// What was found in a folder of checkpoints.
struct CheckpointSearch {
  /// The complete one with the highest N, if there is one; also one of another
  /// version, which `restoreCheckpoint` refuses.
  std::optional<std::string> newest;
  /// Why those with a higher N are not complete, the highest first.
  std::vector<std::string> passedOver;
};
/// Fails where a checkpoint is there, but cannot be read.
Result<CheckpointSearch> findNewestCheckpoint(const std::string &root);

/// Sets parameters, and what else of the model's own the file has, from a
/// safetensors file with their names. All parameters must be there; f32 and f64
/// are converted into each other. All problems are listed, and nothing is
/// changed then.
Status initializeFrom(TrainingSession &session, const std::string &path);

/// Writes parameters and buffers under the model's names.
Status exportParameters(const TrainingSession &session,
                        const std::string &path);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_CHECKPOINT_H
