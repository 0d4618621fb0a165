//===- TrainSession.h - A session and its data for a command ----*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRAINSESSION_H
#define TCC_TOOLS_TCCRUN_TRAINSESSION_H

#include "runtime/data/BatchLoader.h"
#include "runtime/package/Tensor.h"
#include "runtime/train/Session.h"
#include "tools/tcc-run/Options.h"

namespace tcc::tools {

/// A session with the parameters that the flags name; `communicator` is null
/// for one rank, and outlives it.
runtime::Result<std::unique_ptr<runtime::TrainingSession>>
openTraining(const RunningOptions &running, const DataOptions &data,
             runtime::Communicator *communicator);

/// Restores the checkpoint of a folder that is chosen, if complete, and returns
/// its path. Says on stderr, unless `quiet`, why newer ones are passed over. Of
/// several ranks the first one reads it, and all share what it has. Where there
/// is none at all it is an error, unless it `mayBeNone`: then the path is
/// empty.
runtime::Result<std::string>
restoreFrom(runtime::TrainingSession &session, const std::string &folder,
            const runtime::CheckpointChoice &choice, bool quiet,
            bool mayBeNone = false);

/// Code::OutOfMemory where the memory budget of the package has no room for a
/// copy of the variables. One of a device's variables is in the host's memory,
/// which no budget is of.
runtime::Status checkRoomForCopy(const runtime::TrainingSession &session);

/// Fails where the model to write into is another one.
runtime::Status checkTarget(const ExportTarget &target,
                            const runtime::TrainingSession &session);
/// Writes the parameters and buffers of a session.
runtime::Status exportTo(const ExportTarget &target,
                         const runtime::TrainingSession &session);

/// How many batches of `samples` each rank adds up for an update: the setting
/// `accumulate`, or what makes `global` samples or `exact` batches of all
/// ranks.
runtime::Result<int64_t> getAccumulation(runtime::TrainingSession &session,
                                         int64_t samples);

/// Does what --set KEY=VALUE says.
runtime::Status applySetting(runtime::TrainingSession &session,
                             const std::string &setting);

/// The extents of an input, none of which may be symbolic.
runtime::Result<std::vector<int64_t>>
getStaticShape(const format::TensorSpec &input);

/// Keeps which samples a batch number means among the session's records, and
/// compares it with what is there from the checkpoint that training goes on
/// from. Code::Usage where that shuffles in an order of another version. Says
/// on stderr, unless `quiet`, where the data have another number of samples.
runtime::Status recordData(runtime::TrainingSession &session,
                           const runtime::BatchLoader &loader, bool quiet);

/// Random tensors for the inputs of an entry point, whose shapes must be
/// static.
class RandomBatch {
public:
  static runtime::Result<RandomBatch> make(const format::Entry &entry);

  std::span<const runtime::TensorView> views() const { return tensorViews; }
  /// Samples: the first extent of the first input.
  int64_t size() const;

private:
  std::vector<runtime::Tensor> tensors;
  std::vector<runtime::TensorView> tensorViews;
};

/// Batches for an entry point, whose shapes must be static.
class Batches {
public:
  static runtime::Result<Batches> open(const runtime::TrainingSession &session,
                                       format::EntryKind entry,
                                       const std::string &spec, uint64_t seed,
                                       bool shuffles);

  const runtime::BatchLoader &loader() const { return batches; }
  /// See BatchLoader.
  runtime::Status read(int64_t number, std::span<const int64_t> next = {}) {
    return batches.read(number, next);
  }
  std::span<const runtime::TensorView> views() const { return batches.batch(); }
  double takeWait() { return batches.takeWait(); }
  /// Why the session failed at the batch of that number; if an index of it was
  /// out of range, with its array and sample. Reads the batch again.
  runtime::Status explain(runtime::Status failure,
                          const runtime::TrainingSession &session,
                          int64_t batch);

private:
  Batches(runtime::BatchLoader loader, const format::Entry &entry)
      : batches(std::move(loader)), entry(&entry) {}

  std::string findBadIndex(int64_t index) const;

  runtime::BatchLoader batches;
  const format::Entry *entry;
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRAINSESSION_H
