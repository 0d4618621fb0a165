//===- Checkpoint.h - Sessions in files -------------------------*- C++ -*-===//
//
// A checkpoint is a folder ROOT/step-N with the tensors of a session in
// safetensors, and manifest.json, which says where each is (Manifest.h). It
// appears whole or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_TRAIN_CHECKPOINT_H
#define TCC_RUNTIME_TRAIN_CHECKPOINT_H

#include "runtime/train/CheckpointFolder.h"
#include "runtime/train/Session.h"

namespace tcc::runtime {

/// Writes ROOT/step-N, N updates so far, and returns its path. One of that name
/// is replaced. Of several ranks the first one writes what all have the same;
/// where they divide variables all of them make the call at the same place, and
/// each writes its parts into the folder, which all share. Code::Usage between
/// the batches of an update where that is of several ranks.
Result<std::string> saveCheckpoint(const TrainingSession &session,
                                   const std::string &root);

/// Restores the checkpoint at `path`. It must have exactly the variables of the
/// session: all that is missing, unexpected or of another type is listed, and
/// nothing is changed then. A rank takes its parts, however many ranks wrote
/// it; what ranks do not divide each may restore, or the first one and then
/// all share its variables.
Status restoreCheckpoint(TrainingSession &session, const std::string &path);

/// Restores the newest checkpoint in a folder whose bytes are those that were
/// written, and says why newer ones are passed over; `newest` is nothing where
/// there is none. All ranks make the call at the same place, and restore the
/// same one. Fails as `restoreCheckpoint` does, but for what is incomplete or
/// damaged.
Result<CheckpointSearch> restoreLatestCheckpoint(TrainingSession &session,
                                                 const std::string &root);

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
