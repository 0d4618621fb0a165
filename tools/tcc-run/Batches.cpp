#include "tools/tcc-run/Batches.h"

#include "runtime/data/Skipped.h"
#include "runtime/executor/Variants.h"
#include "runtime/package/SizeExpr.h"
#include "runtime/train/Checkpoint.h"
#include "runtime/train/InputRole.h"
#include "tools/tcc-run/TrainSession.h"

#include <iostream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

Status tools::chooseForEvaluation(const std::string &spec, DataPlan &plan) {
  if (Status status = plan.use(spec); !status.ok())
    return status;
  if (!isPlanFile(spec))
    plan.split = 0;
  return Status();
}

/// An input in each variant of an entry point.
static Result<std::vector<std::vector<int64_t>>>
listShapes(std::span<const format::Entry *const> variants, uint32_t index) {
  std::vector<std::vector<int64_t>> shapes;
  for (const format::Entry *entry : variants) {
    const format::TensorSpec &input = *entry->inputs()->Get(index);
    auto shape = getStaticShape(input);
    if (!shape.ok())
      return shape.takeStatus();
    auto samples = staticShape(*entry->inputs()->Get(0));
    if (shape->empty() || !samples || samples->empty() ||
        (*shape)[0] != (*samples)[0])
      return makeError(Code::Usage, "input '", input.name()->string_view(),
                       "' is ", formatShape(*shape),
                       ": samples come first, as many as the batch has");
    shapes.push_back(std::move(*shape));
  }
  return shapes;
}

/// The inputs of an entry point as tensors of a batch.
static Result<std::vector<BatchTensor>>
describeBatch(const TrainingSession &session,
              std::span<const format::Entry *const> variants) {
  std::vector<BatchTensor> tensors;
  for (const format::TensorSpec *input : *variants[0]->inputs()) {
    auto shapes = listShapes(variants, uint32_t(tensors.size()));
    if (!shapes.ok())
      return shapes.takeStatus();
    InputRole role = inputRoleOf(session, input->name()->string_view());
    tensors.push_back(BatchTensor::of(input->name()->str(), input->dtype(),
                                      std::move(*shapes)));
    tensors.back().isTarget = role.isTarget;
    tensors.back().tokensAhead = role.tokensAhead;
    tensors.back().ignoreIndex = role.ignoreIndex;
  }
  return tensors;
}

static bool isIndex(const format::TensorSpec &input) {
  return input.index_min() <= input.index_max();
}

/// The positions of a batch in each variant, the most of any input; 0 where
/// samples have one at most.
static std::vector<int64_t> countTokens(const format::Entry &entry,
                                        std::span<const BatchTensor> tensors) {
  std::vector<int64_t> tokens(std::max<size_t>(tensors[0].variants.size(), 1));
  for (size_t i = 0; i < tensors.size(); ++i) {
    const BatchTensor &tensor = tensors[i];
    bool isSequence = tensor.shape.size() == 2 && tensor.shape[1] > 1;
    if (!isSequence || !isIndex(*entry.inputs()->Get(uint32_t(i))))
      continue;
    for (size_t variant = 0; variant < tokens.size(); ++variant) {
      const auto &shape =
          tensor.variants.empty() ? tensor.shape : tensor.variants[variant];
      tokens[variant] = std::max(tokens[variant], shape[0] * shape[1]);
    }
  }
  return tokens;
}

Batches::Batches(BatchLoader loader,
                 std::span<const format::Entry *const> variants,
                 std::span<const BatchTensor> tensors,
                 std::shared_ptr<SkippedSamples> skipped)
    : batches(std::move(loader)), entry(variants[0]),
      tokens(countTokens(*variants[0], tensors)), skipped(std::move(skipped)) {}

Result<Batches> Batches::open(const runtime::TrainingSession &session,
                              format::EntryKind kind, const DataPlan &plan,
                              uint64_t seed, bool shuffles) {
  auto variants = listVariants(session.executable().program(), kind);
  if (variants.empty())
    return makeError(Code::Usage, "the package has no entry '",
                     format::nameOf(kind), "'");
  auto tensors = describeBatch(session, variants);
  if (!tensors.ok())
    return tensors.takeStatus();
  DataPhase phase =
      kind == format::EntryKind::eval ? DataPhase::eval : DataPhase::train;
  auto skipped = plan.skipsBad ? std::make_shared<SkippedSamples>() : nullptr;
  auto source = openData(plan, phase, *tensors, seed, skipped);
  if (!source.ok())
    return source.takeStatus();
  auto loader =
      makeLoader(plan, phase, std::move(*source), *tensors, seed, shuffles);
  if (!loader.ok())
    return loader.takeStatus();
  return Batches(std::move(*loader), variants, *tensors, std::move(skipped));
}

std::optional<int64_t> Batches::skippedCount() const {
  return skipped ? std::optional(skipped->count()) : std::nullopt;
}

void Batches::warnOfSkipped(bool quiet) const {
  if (!skipped || quiet)
    return;
  for (const std::string &problem : skipped->takeProblems())
    std::cerr << concat("tcc-run: warning: skipped: ", problem, "\n");
}

Status tools::recordData(TrainingSession &session, const BatchLoader &loader,
                         bool quiet) {
  DataRecord here = {
      .order = loader.order().isShuffled() ? SampleOrder::kVersion : 0,
      .samples = loader.order().sampleCount(),
      .batches = loader.order().batchesPerEpoch()};
  // Before there were records there was one order.
  bool goesOn = session.stepCount() > 0;
  DataRecord before = session.records().data.value_or(DataRecord{1, 0, 0});
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
  else if (before.batches > 0 && before.batches != here.batches && !quiet)
    std::cerr << concat("tcc-run: note: an epoch has ", here.batches,
                        " batches, and had ", before.batches,
                        ": samples come in another order\n");
  return Status();
}

/// The array and the sample in the batch that was read; empty if the index is
/// in none, or in several arrays, of which one may mean it to be skipped.
std::string Batches::findBadIndex(int64_t index) const {
  std::string place;
  for (uint32_t i = 0; i < entry->inputs()->size(); ++i) {
    const format::TensorSpec &input = *entry->inputs()->Get(i);
    bool isInside = index >= input.index_min() && index <= input.index_max();
    if (auto sample = batches.findSample(i, index);
        sample && isIndex(input) && !isInside) {
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
