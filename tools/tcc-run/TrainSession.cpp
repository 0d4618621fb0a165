#include "tools/tcc-run/TrainSession.h"

#include "runtime/base/Divisors.h"
#include "runtime/data/OnnxExport.h"
#include "runtime/package/SizeExpr.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/CheckpointFormat.h"
#include "tools/tcc-run/Inputs.h"
#include "tools/tcc-run/Session.h"

#include <iostream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

Result<std::unique_ptr<runtime::TrainingSession>>
tools::openTraining(const RunningOptions &running, const DataOptions &data,
                    Communicator *communicator) {
  auto executable = loadExecutable(running);
  if (!executable.ok())
    return executable.takeStatus();
  if (!(*executable)->findEntry(format::EntryKind::accumulate_step))
    return makeError(Code::Usage, "package '", running.package,
                     "' was not compiled with --train");
  SessionOptions options;
  options.threads = running.threads;
  options.communicator = communicator;
  auto session =
      runtime::TrainingSession::create(std::move(*executable), options);
  if (!session.ok() || data.init.empty())
    return session;
  if ((*session)->rank() == 0)
    if (Status status = initializeFrom(**session, data.init); !status.ok())
      return status;
  if (Status status = (*session)->shareVariables(); !status.ok())
    return status;
  return session;
}

Result<std::string> tools::restoreFrom(runtime::TrainingSession &session,
                                       const std::string &folder,
                                       const CheckpointChoice &choice,
                                       bool quiet, bool mayBeNone) {
  Result<CheckpointSearch> found =
      restoreLatestCheckpoint(session, folder, choice);
  if (!found.ok())
    return found.takeStatus();
  bool isNone = !found->newest && found->passedOver.empty();
  if (!found->newest && !(isNone && mayBeNone)) {
    std::string reasons;
    for (const std::string &reason : found->passedOver)
      reasons += "; " + reason;
    return makeError(found->isAnyDamaged ? Code::BadData : Code::Io,
                     "there is no complete checkpoint in '", folder, "'",
                     reasons);
  }
  if (!quiet && session.rank() == 0)
    for (const std::string &reason : found->passedOver)
      std::cerr << "tcc-run: note: passing over a checkpoint: " << reason
                << '\n';
  return found->newest.value_or("");
}

Status tools::checkRoomForCopy(const TrainingSession &session) {
  uint64_t budget = session.executable().program().memory_budget();
  uint64_t needed = session.planned().total() + session.variables().byteCount();
  if (!session.variables().isOnHost() || budget == 0 || needed <= budget)
    return Status();
  return makeError(Code::OutOfMemory, "with a copy of the variables ", needed,
                   " bytes are needed, the memory budget has ", budget);
}

Status tools::checkTarget(const ExportTarget &target,
                          const TrainingSession &session) {
  return target.onnx.empty() ? Status() : checkOnnx(session, target.onnx);
}

Status tools::exportTo(const ExportTarget &target,
                       const TrainingSession &session) {
  return target.onnx.empty() ? exportParameters(session, target.file)
                             : exportOnnx(session, target.onnx, target.file);
}

static Result<int64_t> readCount(TrainingSession &session, const char *key) {
  Result<double> count = session.settings().get(key);
  if (!count.ok())
    return count.takeStatus();
  if (*count < 1)
    return makeError(Code::Usage, key, " is ", *count, ", expected at least 1");
  return static_cast<int64_t>(*count);
}

Result<int64_t> tools::getAccumulation(TrainingSession &session,
                                       int64_t samples) {
  Settings settings = session.settings();
  int64_t exact = session.exactBatches();
  if (!settings.find("global") && exact > 0)
    return exact / session.rankCount();
  if (!settings.find("global"))
    return settings.find("accumulate") ? readCount(session, "accumulate") : 1;
  Result<int64_t> global = readCount(session, "global");
  if (!global.ok())
    return global;
  if (*global % samples)
    return makeError(Code::Usage, "global is ", *global,
                     " samples, expected a multiple of the batch of ", samples);
  int64_t batches = *global / samples;
  if (exact > 0 && batches != exact)
    return makeError(Code::Usage, "global is ", *global, " samples, expected ",
                     exact * samples, ": parallel.exact is ", exact,
                     " batches of ", samples);
  if (batches % session.rankCount())
    return makeError(Code::Usage, "global is ", *global, " samples, ", batches,
                     " batches, which ", session.rankCount(),
                     " ranks cannot share; these numbers of ranks can: ",
                     listDivisors(batches));
  return batches / session.rankCount();
}

/// Says which flag was wrong.
static Status nameFlag(Status status) {
  return status.ok() ? Status()
                     : makeError(status.code(), "--set: ", status.message());
}

Status tools::applySetting(TrainingSession &session,
                           const std::string &setting) {
  size_t at = setting.find('=');
  if (at == std::string::npos || at == 0)
    return makeError(Code::Usage, "--set: '", setting, "', expected KEY=VALUE");
  std::string_view text = setting;
  return nameFlag(
      session.settings().set(text.substr(0, at), text.substr(at + 1)));
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

Result<std::vector<int64_t>>
tools::getStaticShape(const format::TensorSpec &input) {
  auto shape = runtime::staticShape(input);
  if (!shape)
    return makeError(Code::Usage, "input '", input.name()->string_view(),
                     "' has no static shape: compile with --dim");
  return std::move(*shape);
}

Result<RandomBatch> RandomBatch::make(const format::Entry &entry) {
  RandomBatch batch;
  for (const format::TensorSpec *input : *entry.inputs()) {
    auto shape = getStaticShape(*input);
    if (!shape.ok())
      return shape.takeStatus();
    auto tensor = Tensor::allocate(input->dtype(), std::move(*shape));
    if (!tensor.ok())
      return tensor.takeStatus();
    fillRandom(*tensor, /*seed=*/0, batch.tensors.size(), *input);
    batch.tensors.push_back(std::move(*tensor));
  }
  for (const Tensor &tensor : batch.tensors)
    batch.tensorViews.push_back(
        {tensor.data.data(), tensor.dtype, tensor.shape});
  return batch;
}

int64_t RandomBatch::size() const {
  bool hasSamples = !tensors.empty() && !tensors.front().shape.empty();
  return hasSamples ? tensors.front().shape.front() : 1;
}
