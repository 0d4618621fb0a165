//===- TrainSession.h - A session and its data for a command ----*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_TRAINSESSION_H
#define TCC_TOOLS_TCCRUN_TRAINSESSION_H

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

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_TRAINSESSION_H
