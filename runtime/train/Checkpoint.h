//===- Checkpoint.h - Sessions in files -------------------------*- C++ -*-===//
//
// A checkpoint is a folder ROOT/step-N with the tensors of a session in
// safetensors, and manifest.json, which says where each is (Manifest.h). It
// appears whole or not at all.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_TRAIN_CHECKPOINT_H
#define TCC_RUNTIME_TRAIN_CHECKPOINT_H

#include "runtime/trace/HostTrace.h"
#include "runtime/train/CheckpointFolder.h"
#include "runtime/train/CheckpointWriter.h"

#include <atomic>
#include <functional>
#include <thread>

namespace tcc::runtime {

/// Writes ROOT/step-N, N updates so far, and returns its path. One of that name
/// is replaced. Of several ranks the first one writes what all have the same;
/// where they divide variables all of them make the call at the same place, and
/// each writes its parts into the folder, which all share. Code::Usage between
/// the batches of an update where that is of several ranks. Files have at most
/// `mostFileBytes`, or one tensor.
Result<std::string> saveCheckpoint(const TrainingSession &session,
                                   const std::string &root,
                                   uint64_t mostFileBytes = kMostFileBytes);

/// Saves checkpoints beside training: a step waits while all variables are
/// copied, then another thread writes the copy, and removes older checkpoints.
/// One is under way at most. Used as its session is; of several ranks all make
/// the same calls.
class BackgroundSave {
public:
  /// Into the folder `root`. The session outlives it.
  /// What its thread does is added to `trace`, null for none, which outlives
  /// it.
  BackgroundSave(TrainingSession &session, std::string root,
                 const Retention &retention, HostTrace *trace = nullptr);
  /// Waits for this rank's part. Where ranks share the work, an active one gets
  /// no name.
  ~BackgroundSave();
  BackgroundSave(const BackgroundSave &) = delete;
  BackgroundSave &operator=(const BackgroundSave &) = delete;

  /// Between two steps, when none is active. Fails as `saveCheckpoint` does, or
  /// with Code::OutOfMemory; none is active then.
  Status begin();
  /// Since `begin`, until `advance` or `finish` has said what became of it.
  bool isActive() const { return writer.has_value(); }
  /// Whether this rank's thread has done what it was given: `advance` does not
  /// wait for it.
  bool isReady() const { return isDone; }

  /// Requires an active save, best when all ranks are ready: does what ranks do
  /// together. The save is active no more once it was written, and its path is
  /// returned, or once it failed.
  Result<std::string> advance();
  /// Requires an active save, and waits for its end.
  Result<std::string> finish();
  /// Why the last one that was written could not remove older ones, if so.
  const Status &removal() const { return removed; }

private:
  Status agree(Status own) const;
  void work(std::function<Status()> task);
  Status write();
  Status publish();
  Result<std::string> conclude(Status status);

  TrainingSession &session;
  std::string root;
  Retention retention;
  HostTrace *trace;
  std::optional<CheckpointWriter> writer; ///< of the active one
  bool isPublishing = false;              ///< the thread does the last part
  std::thread thread;
  std::atomic<bool> isDone = false; ///< `done` is what the thread returned
  Status done, removed;
};

/// Restores the checkpoint at `path`. It must have exactly the variables of the
/// session: all that is missing, unexpected or of another type is listed, and
/// nothing is changed then. A rank takes its parts, however many ranks wrote
/// it; what ranks do not divide each may restore, or the first one and then
/// all share its variables.
Status restoreCheckpoint(TrainingSession &session, const std::string &path);

/// Restores the newest checkpoint in a folder whose bytes are those that were
/// written, or the one that is chosen, and says why newer ones are passed over;
/// `newest` is nothing where there is none. All ranks make the call at the same
/// place, and restore the same one, which rank 0 chooses. Fails as
/// `chooseCheckpoints` and `restoreCheckpoint` do, but for what is incomplete
/// or damaged.
Result<CheckpointSearch>
restoreLatestCheckpoint(TrainingSession &session, const std::string &root,
                        const CheckpointChoice &choice = {});

/// Sets parameters, and what else of the model's own the file has, from a
/// safetensors file, or an index of several, with their names. All parameters
/// must be there; f32 and f64 are converted into each other. All problems are
/// listed, and nothing is changed then.
Status initializeFrom(TrainingSession &session, const std::string &path);

/// Writes parameters and buffers under the model's names.
Status exportParameters(const TrainingSession &session,
                        const std::string &path);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_CHECKPOINT_H
