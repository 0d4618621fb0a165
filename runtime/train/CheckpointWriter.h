//===- CheckpointWriter.h - One checkpoint, part by part --------*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_CHECKPOINTWRITER_H
#define TCC_RUNTIME_TRAIN_CHECKPOINTWRITER_H

#include "runtime/train/CheckpointFiles.h"
#include "runtime/train/Session.h"

namespace tcc::runtime {

/// A checkpoint ROOT/step-N that is written, at each rank, by calls in this
/// order, of which some need neither the session nor other ranks and may be
/// made by another thread while training goes on. A rank that has nothing to
/// write does nothing in them.
class CheckpointWriter {
public:
  /// The session outlives it.
  CheckpointWriter(const TrainingSession &session, const std::string &root,
                   uint64_t mostFileBytes = kMostFileBytes);

  const std::string &getPath() const { return path; }
  /// Whether all ranks write, and must call `begin` and `gather` at the same
  /// place; otherwise the first one writes alone.
  bool isShared() const { return ranks != nullptr; }

  /// 1. Makes the folder, and notes what the session is now. With `copy`, of
  /// all variables' bytes, these are copied there; without it they must not
  /// change before `write` returns. Code::Usage between the batches of an
  /// update where that is of several ranks.
  Status begin(Memory *copy);
  /// 2. By any thread: writes the files of this rank.
  Status write();
  /// 3. With what `write` returned, once all ranks have called it. What one
  /// rank could not do fails at all of them.
  Status gather(Status written);
  /// 4. By any thread, at the first rank: the manifest, and the name. Before
  /// the folder has that the disk keeps all that is in it.
  Status publish();
  /// After an error, at the first rank: removes the folder.
  void abandon();

private:
  bool isFirst() const { return rank == 0; }
  Status agree(Status own) const;
  Status makeFolder();
  void describe();
  Status exchange();
  Status list();
  Status listPart(int of, std::map<std::string_view, ListedTensor> &listed);
  Status writeIndex() const;

  const TrainingSession &session;
  const Variables &variables;
  std::string root, path, temporary;
  Communicator *ranks = nullptr; ///< null where the first one has everything
  int rank;
  Manifest manifest; ///< without the tensors
  std::optional<Variables::Snapshot> snapshot;
  std::vector<Shard> shared;             ///< files of the first rank
  std::vector<std::vector<Shard>> parts; ///< files of each rank
  std::vector<format::Digest> sharedDigests;
  /// The digests of each rank's part, as many as the one with most pieces has.
  std::vector<format::Digest> digests;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_CHECKPOINTWRITER_H
