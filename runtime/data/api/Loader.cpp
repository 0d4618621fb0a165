// The C API of the loader.

#include "runtime/api/Guard.h"
#include "runtime/data/DataPlan.h"
#include "runtime/data/Skipped.h"
#include "tcc/data.h"

#include <algorithm>
#include <deque>

using namespace tcc;
using namespace tcc::runtime;

struct tcc_loader {
  std::shared_ptr<SkippedSamples> skipped; ///< null: damaged samples fail
  BatchLoader batches;
  std::deque<std::string> problems; ///< not told yet
  std::string told;
  double waited = 0; ///< seconds
};

namespace {

/// Samples of the caller.
class OwnSource final : public SampleSource {
public:
  explicit OwnSource(const tcc_sample_source &own) : own(own) {}
  ~OwnSource() override {
    if (own.release)
      own.release(own.user);
  }
  OwnSource(const OwnSource &) = delete;
  OwnSource &operator=(const OwnSource &) = delete;

  int64_t sampleCount() const override { return own.sample_count; }
  Result<SampleRoom> needs(int64_t number) const override;
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override;

  /// The bytes of a sample's part of each tensor, which `needs` may not exceed.
  SampleRoom largest;

private:
  const tcc_sample_source own;
};

struct Options {
  DataPlan plan;
  DataPhase phase;
  uint64_t seed;
  bool shuffles;
};

} // namespace

/// What a function of the caller returned.
static Status take(tcc_status failure) {
  if (!failure)
    return Status();
  Status status(static_cast<Code>(tcc_status_code(failure)),
                tcc_status_message(failure));
  tcc_status_free(failure);
  return status;
}

Result<SampleRoom> OwnSource::needs(int64_t number) const {
  if (!own.needs)
    return SampleSource::needs(number);
  SampleRoom bytes(largest.size());
  Status status = take(own.needs(own.user, number, bytes.data(), bytes.size()));
  if (!status.ok())
    return status;
  for (size_t i = 0; i < bytes.size(); ++i)
    if (bytes[i] > largest[i])
      return makeError(Code::BadData, "sample ", number, " needs ", bytes[i],
                       " bytes of tensor ", i, ", the largest samples have ",
                       largest[i]);
  return bytes;
}

Status OwnSource::read(int64_t epoch, int64_t number, SampleParts parts) const {
  std::vector<void *> places;
  std::vector<size_t> bytes;
  for (std::span<std::byte> part : parts) {
    places.push_back(part.data());
    bytes.push_back(part.size());
  }
  return take(own.read(own.user, epoch, number, places.data(), bytes.data(),
                       parts.size()));
}

/// The shapes of a tensor, whose first extents are those of the first tensor.
static Result<std::vector<std::vector<int64_t>>>
readShapes(const tcc_loader_tensor &tensor, const tcc_loader_tensor &first) {
  std::vector<std::vector<int64_t>> shapes;
  bool areExtents = tensor.rank > 0 && first.rank > 0 &&
                    tensor.variant_count == first.variant_count;
  for (size_t i = 0;
       areExtents && i < std::max<size_t>(tensor.variant_count, 1); ++i) {
    bool hasVariants = tensor.variant_count > 0;
    const int64_t *shape = hasVariants ? tensor.variants[i] : tensor.shape;
    const int64_t *samples = hasVariants ? first.variants[i] : first.shape;
    shapes.emplace_back(shape, shape + tensor.rank);
    areExtents &= std::ranges::min(shapes.back()) > 0 && shape[0] == samples[0];
  }
  if (areExtents)
    return shapes;
  return makeError(Code::Usage, "tensor '", tensor.name,
                   "': expected extents above 0, the first of which is the "
                   "same for all tensors, and as many variants");
}

static Result<std::vector<BatchTensor>>
readTensors(const tcc_loader_tensor *tensors, size_t count) {
  std::vector<BatchTensor> read;
  for (const tcc_loader_tensor &tensor : std::span(tensors, count)) {
    auto dtype = toDType(tensor.dtype);
    if (!dtype)
      return makeError(Code::Usage, "tensor '", tensor.name,
                       "': there is no dtype ", int(tensor.dtype));
    auto shapes = readShapes(tensor, tensors[0]);
    if (!shapes.ok())
      return shapes.takeStatus();
    BatchTensor known =
        BatchTensor::of(tensor.name, *dtype, std::move(*shapes));
    known.isTarget = tensor.role.is_target != 0;
    if (tensor.role.tokens_ahead >= 0)
      known.tokensAhead = tensor.role.tokens_ahead;
    if (tensor.role.ignore_index != INT64_MIN)
      known.ignoreIndex = tensor.role.ignore_index;
    read.push_back(std::move(known));
  }
  if (read.empty())
    return Status(Code::Usage, "a batch has at least one tensor");
  return read;
}

/// `data` is null for the source of the options' plan, or samples of the
/// caller.
static Result<Options> readAll(const char *data,
                               const tcc_loader_options *given) {
  tcc_loader_options known = readOptions(given);
  bool isTraining = known.phase == TCC_LOADER_TRAIN;
  if (!isTraining && known.phase != TCC_LOADER_EVAL)
    return makeError(Code::Usage, "there is no phase ", int(known.phase));
  Options options = {{},
                     isTraining ? DataPhase::train : DataPhase::eval,
                     known.seed,
                     isTraining && !known.keeps_order};
  if (known.plan)
    if (Status status = options.plan.read(known.plan); !status.ok())
      return status;
  if (data)
    if (Status status = options.plan.use(data); !status.ok())
      return status;
  for (const char *setting : std::span(known.settings, known.setting_count)) {
    std::string_view text = setting;
    size_t at = text.find('=');
    if (at == text.npos)
      return makeError(Code::Usage, "setting '", text, "', expected KEY=VALUE");
    Status status = options.plan.set(text.substr(0, at), text.substr(at + 1));
    if (!status.ok())
      return status;
  }
  return options;
}

static Result<std::unique_ptr<tcc_loader>>
makeLoader(const Options &options, std::unique_ptr<SampleSource> source,
           std::span<const BatchTensor> tensors,
           std::shared_ptr<SkippedSamples> skipped) {
  auto batches = makeLoader(options.plan, options.phase, std::move(source),
                            tensors, options.seed, options.shuffles);
  if (!batches.ok())
    return batches.takeStatus();
  return std::unique_ptr<tcc_loader>(new tcc_loader{
      std::move(skipped), std::move(*batches), {}, "", /*waited=*/0});
}

static std::shared_ptr<SkippedSamples> makeSkipped(const DataPlan &plan) {
  return plan.skipsBad ? std::make_shared<SkippedSamples>() : nullptr;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

tcc_status tcc_loader_open(const char *data, const tcc_loader_tensor *tensors,
                           size_t count, const tcc_loader_options *given,
                           tcc_loader **loader) {
  return guard([&]() -> Status {
    auto known = readTensors(tensors, count);
    if (!known.ok())
      return known.takeStatus();
    auto options = readAll(data, given);
    if (!options.ok())
      return options.takeStatus();
    if (options->plan.sources.empty())
      return Status(Code::Usage, "there is neither data nor a plan that has a "
                                 "source");
    auto skipped = makeSkipped(options->plan);
    auto source =
        openData(options->plan, options->phase, *known, options->seed, skipped);
    if (!source.ok())
      return source.takeStatus();
    auto made = makeLoader(*options, std::move(*source), *known, skipped);
    if (!made.ok())
      return made.takeStatus();
    *loader = made->release();
    return Status();
  });
}

tcc_status tcc_loader_open_source(const tcc_sample_source *given,
                                  const tcc_loader_tensor *tensors,
                                  size_t count,
                                  const tcc_loader_options *givenOptions,
                                  tcc_loader **loader) {
  return guard([&]() -> Status {
    tcc_sample_source own = readOptions(given);
    auto ownSource = std::make_unique<OwnSource>(own);
    if (!own.read || own.sample_count < 0)
      return Status(Code::Usage, "a source has samples and reads them");
    auto known = readTensors(tensors, count);
    if (!known.ok())
      return known.takeStatus();
    auto options = readAll(/*data=*/nullptr, givenOptions);
    if (!options.ok())
      return options.takeStatus();
    const DataPlan &plan = options->plan;
    if (!plan.sources.empty() || !plan.weights.empty() ||
        !plan.fields.empty() || !plan.classes.empty() ||
        !plan.balance.empty() || !plan.train.empty() || !plan.eval.empty() ||
        !plan.pads.empty())
      return Status(Code::Usage, "of a source of the caller's there are the "
                                 "settings workers, depth, mix, on_bad and "
                                 "split");
    auto skipped = makeSkipped(plan);
    for (const BatchTensor &tensor : *known)
      ownSource->largest.push_back(tensor.sampleBytes());
    auto source =
        applyPlan(plan, options->phase, std::move(ownSource), skipped);
    auto made = makeLoader(*options, std::move(source), *known, skipped);
    if (!made.ok())
      return made.takeStatus();
    *loader = made->release();
    return Status();
  });
}

void tcc_loader_release(tcc_loader *loader) { delete loader; }

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

int64_t tcc_loader_sample_count(const tcc_loader *loader) {
  return loader->batches.order().sampleCount();
}

int64_t tcc_loader_batches_per_epoch(const tcc_loader *loader) {
  return loader->batches.order().batchesPerEpoch();
}

tcc_status tcc_loader_read(tcc_loader *loader, int64_t number, int64_t stride,
                           tcc_tensor *tensors) {
  return guard([&] {
    if (number < 0 || stride < 1)
      return makeError(Code::Usage, "batch ", number, " and a stride of ",
                       stride, ", expected at least 0 and 1");
    std::vector<int64_t> next(loader->batches.depth());
    for (size_t i = 0; i < next.size(); ++i)
      next[i] = number + int64_t(i + 1) * stride;
    Status status = loader->batches.read(number, next);
    loader->waited += loader->batches.takeWait();
    if (loader->skipped)
      for (std::string &problem : loader->skipped->takeProblems())
        loader->problems.push_back(std::move(problem));
    if (!status.ok())
      return status;
    for (const TensorView &view : loader->batches.batch())
      *tensors++ = {view.data, static_cast<tcc_dtype>(view.dtype),
                    view.shape.size(), view.shape.data()};
    return Status();
  });
}

int32_t tcc_loader_spared_threads(const tcc_loader *loader) {
  return loader->batches.sparedThreads();
}

double tcc_loader_wait_seconds(const tcc_loader *loader) {
  return loader->waited;
}

int64_t tcc_loader_skipped_count(const tcc_loader *loader) {
  return loader->skipped ? loader->skipped->count() : 0;
}

const char *tcc_loader_next_problem(tcc_loader *loader) {
  if (loader->problems.empty())
    return nullptr;
  loader->told = std::move(loader->problems.front());
  loader->problems.pop_front();
  return loader->told.c_str();
}
