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

/// The inputs of an entry point as tensors of a batch.
static Result<std::vector<BatchTensor>>
describeBatch(const TrainingSession &session, const format::Entry &entry) {
  const auto recipe = runtime::recipeOf(session);
  const bool isText = recipe.value("loss.kind", "") == "causal_lm";
  const std::string target = recipe.value("loss.target", "");
  const int64_t ahead = recipe.value("loss.shift", "") == "false" ? 1 : 0;
  std::vector<BatchTensor> tensors;
  for (const format::TensorSpec *input : *entry.inputs()) {
    auto shape = getStaticShape(*input);
    if (!shape.ok())
      return shape.takeStatus();
    BatchTensor tensor = {input->name()->str(), input->dtype(),
                          std::move(*shape)};
    tensor.isTarget = tensor.name == target;
    if (isText)
      tensor.tokensAhead = tensor.isTarget ? ahead : 0;
    if (tensor.shape.empty() ||
        (!tensors.empty() && tensor.shape[0] != tensors[0].shape[0]))
      return makeError(Code::Usage, "input '", tensor.name, "' is ",
                       formatShape(tensor.shape),
                       ": samples come first, as many as the batch has");
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Result<Batches> Batches::open(const runtime::TrainingSession &session,
                              format::EntryKind kind, const std::string &spec,
                              uint64_t seed, bool shuffles) {
  const format::Entry *entry = session.executable().findEntry(kind);
  if (!entry)
    return makeError(Code::Usage, "the package has no entry '",
                     format::nameOf(kind), "'");
  auto tensors = describeBatch(session, *entry);
  if (!tensors.ok())
    return tensors.takeStatus();
  auto source = openSource(spec, *tensors);
  if (!source.ok())
    return source.takeStatus();
  SampleOrder order((*source)->sampleCount(), seed, shuffles);
  auto loader = BatchLoader::create(std::move(*source), *tensors, order);
  if (!loader.ok())
    return loader.takeStatus();
  return Batches(std::move(*loader), *entry);
}

Status tools::recordData(TrainingSession &session, const BatchLoader &loader,
                         bool quiet) {
  DataRecord here = {
      .order = loader.sampleOrder().isShuffled() ? SampleOrder::kVersion : 0,
      .samples = loader.sampleCount()};
  // Before there were records there was one order.
  bool goesOn = session.stepCount() > 0;
  DataRecord before = session.records().data.value_or(DataRecord{1, 0});
  session.records().data = here;
  if (!goesOn || here.order == 0)
    return Status();
  if (before.order > 0 && before.order != here.order)
    return makeError(
        Code::Usage, "the checkpoint has order ", before.order,
        " of shuffled samples, this tcc-run has order ", here.order,
        ": end the run with the version that began it, or begin one with "
        "--init from what `tcc-run export` writes of it");
  if (before.samples != here.samples && !quiet)
    std::cerr << concat("tcc-run: note: the data have ", here.samples,
                        " samples, and had ", before.samples,
                        ": they come in another order\n");
  return Status();
}

/// The array and the sample in the batch that was read; empty if the index is
/// in none, or in several arrays, of which one may mean it to be skipped.
std::string Batches::findBadIndex(int64_t index) const {
  std::string place;
  for (uint32_t i = 0; i < entry->inputs()->size(); ++i) {
    const format::TensorSpec &input = *entry->inputs()->Get(i);
    bool isInside = index >= input.index_min() && index <= input.index_max();
    bool isIndex = input.index_min() <= input.index_max();
    if (auto sample = batches.findSample(i, index);
        sample && isIndex && !isInside) {
      if (!place.empty())
        return "";
      place = concat("sample ", *sample, " of array '",
                     input.name()->string_view(), "' has it, expected ",
                     input.index_min(), " to ", input.index_max());
    }
  }
  return place;
}

Status Batches::explain(Status failure, const TrainingSession &session,
                        int64_t batch) {
  auto index = session.badIndex();
  if (!index || !batches.read(batch).ok())
    return failure;
  std::string place = findBadIndex(*index);
  if (place.empty())
    return failure;
  return makeError(failure.code(), failure.message(), ": ", place);
}
