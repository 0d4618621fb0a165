#include "runtime/data/DataPlan.h"
#include "runtime/data/SampleOrder.h"
#include "runtime/data/Skipped.h"
#include "runtime/data/SortBySize.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <numeric>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// Several sources, one after the other.
class Joined final : public SampleSource {
public:
  explicit Joined(std::vector<std::unique_ptr<SampleSource>> all)
      : sources(std::move(all)) {
    int64_t end = 0;
    for (const auto &source : sources)
      ends.push_back(end += source->sampleCount());
  }

  int64_t sampleCount() const override { return ends.back(); }
  Result<SampleRoom> needs(int64_t number) const override {
    auto [source, own] = find(number);
    return sources[source]->needs(own);
  }
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override {
    auto [source, own] = find(number);
    return sources[source]->read(epoch, own, parts);
  }

private:
  std::pair<size_t, int64_t> find(int64_t number) const {
    auto source = size_t(std::ranges::upper_bound(ends, number) - ends.begin());
    return {source, number - (source ? ends[source - 1] : 0)};
  }

  std::vector<std::unique_ptr<SampleSource>> sources;
  std::vector<int64_t> ends; ///< the first sample that is of a later source
};

/// As many samples an epoch as several sources have, of each its share. A
/// source begins anew, in another order, once all its samples were taken.
class Weighted final : public SampleSource {
public:
  Weighted(std::vector<std::unique_ptr<SampleSource>> sources,
           std::span<const double> weights, uint64_t seed);

  int64_t sampleCount() const override { return ends.back(); }
  Result<SampleRoom> needs(int64_t /*number*/) const override {
    return Status(Code::Usage, "data.weights and data.balance take a sample of "
                               "another size for each number in each epoch, "
                               "and variants of several sizes need to know it");
  }
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override;

private:
  std::vector<std::unique_ptr<SampleSource>> sources;
  std::vector<SampleOrder> orders; ///< of each source
  std::vector<int64_t> ends;       ///< of the shares
};

/// Some samples of a source, by their numbers.
class Subset final : public SampleSource {
public:
  Subset(std::shared_ptr<const SampleSource> whole,
         std::vector<int64_t> numbers)
      : source(std::move(whole)), numbers(std::move(numbers)) {}

  int64_t sampleCount() const override { return int64_t(numbers.size()); }
  uint64_t keyOf(int64_t number) const override {
    return source->keyOf(numbers[size_t(number)]);
  }
  Result<SampleRoom> needs(int64_t number) const override {
    return source->needs(numbers[size_t(number)]);
  }
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override {
    return source->read(epoch, numbers[size_t(number)], parts);
  }

private:
  std::shared_ptr<const SampleSource> source;
  std::vector<int64_t> numbers;
};

} // namespace

//===----------------------------------------------------------------------===//
// Samples of several sources
//===----------------------------------------------------------------------===//

Weighted::Weighted(std::vector<std::unique_ptr<SampleSource>> all,
                   std::span<const double> weights, uint64_t seed)
    : sources(std::move(all)) {
  int64_t count = 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    count += sources[i]->sampleCount();
    orders.emplace_back(sources[i]->sampleCount(), seed + i, /*shuffles=*/true);
  }
  double sum = std::accumulate(weights.begin(), weights.end(), 0.0), before = 0;
  for (double weight : weights)
    ends.push_back(std::llround((before += weight) / sum * double(count)));
  ends.back() = count;
}

Status Weighted::read(int64_t epoch, int64_t number, SampleParts parts) const {
  auto source = size_t(std::ranges::upper_bound(ends, number) - ends.begin());
  int64_t begin = source ? ends[source - 1] : 0;
  int64_t count = sources[source]->sampleCount();
  // How many samples of the source came before, in all epochs.
  int64_t taken = epoch * (ends[source] - begin) + number - begin;
  int64_t pass = taken / count;
  return sources[source]->read(pass, orders[source].of(pass).at(taken % count),
                               parts);
}

/// The samples that are kept for evaluations, or the others. A key decides, so
/// that a sample stays where it is when others are added.
static std::unique_ptr<SampleSource>
takePart(std::unique_ptr<SampleSource> source, double share, DataPhase phase) {
  std::vector<int64_t> numbers;
  for (int64_t i = 0; i < source->sampleCount(); ++i) {
    bool isKept = double(source->keyOf(i) >> 11) * 0x1p-53 < share;
    if (isKept == (phase == DataPhase::eval))
      numbers.push_back(i);
  }
  return std::make_unique<Subset>(std::move(source), std::move(numbers));
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

/// Names of a plan that are no inputs.
static Status checkNames(const DataPlan &plan,
                         std::span<const BatchTensor> tensors) {
  auto check = [&](const char *key, const std::string &name) {
    if (std::ranges::find(tensors, name, &BatchTensor::name) != tensors.end())
      return Status();
    std::string known;
    for (const BatchTensor &tensor : tensors)
      known += concat(known.empty() ? "'" : ", '", tensor.name, "'");
    return makeError(Code::Usage, "data.", key, " has '", name,
                     "', the inputs and the target are ", known);
  };
  for (const auto &[name, fields] : plan.fields)
    if (Status status = check("map", name); !status.ok())
      return status;
  for (const auto &[name, classes] : plan.classes)
    if (Status status = check("classes", name); !status.ok())
      return status;
  for (const auto &[name, pad] : plan.pads)
    if (Status status = check("pad", name); !status.ok())
      return status;
  for (DataPhase phase : {DataPhase::train, DataPhase::eval})
    for (const auto &[name, lines] : plan.transformsOf(phase))
      if (Status status = check(nameOf(phase), name); !status.ok())
        return status;
  return Status();
}

/// The tensors as the plan has them.
static std::vector<BatchTensor> describe(const DataPlan &plan, DataPhase phase,
                                         std::span<const BatchTensor> tensors) {
  std::vector<BatchTensor> described(tensors.begin(), tensors.end());
  auto take = [](const DataPlan::Lists &lists, const std::string &name,
                 std::vector<std::string> &to) {
    if (auto found = lists.find(name); found != lists.end())
      to = found->second;
  };
  for (BatchTensor &tensor : described) {
    take(plan.fields, tensor.name, tensor.fields);
    take(plan.classes, tensor.name, tensor.classes);
    take(plan.transformsOf(phase), tensor.name, tensor.transforms);
    if (auto pad = plan.pads.find(tensor.name); pad != plan.pads.end())
      tensor.pad = pad->second;
  }
  return described;
}

using Opened = Result<std::unique_ptr<SampleSource>>;

static Opened openSources(const DataPlan &plan, DataPhase phase,
                          std::span<const BatchTensor> tensors, uint64_t seed,
                          std::shared_ptr<SkippedSamples> skipped) {
  if (!plan.weights.empty() && plan.weights.size() != plan.sources.size())
    return makeError(Code::Usage, "data.weights has ", plan.weights.size(),
                     " numbers, data.source ", plan.sources.size(), " sources");
  Files files;
  if (plan.blocks) {
    auto cache = plan.blocks->open();
    if (!cache.ok())
      return cache.takeStatus();
    files.cache = std::move(*cache);
  }
  std::vector<std::unique_ptr<SampleSource>> sources;
  for (const std::string &spec : plan.sources) {
    auto source =
        openSource(spec, tensors, {seed + sources.size(), plan.images, files});
    if (!source.ok())
      return source;
    // Before sources are mixed: a sample is of one part, and counted as one.
    sources.push_back(
        applyPlan(plan, phase, std::move(*source), skipped, sources.size()));
    if (!plan.weights.empty() && sources.back()->sampleCount() == 0)
      return makeError(Code::BadData, "'", spec, "' has no samples");
  }
  if (sources.empty())
    return Status(Code::Usage, "there are no data: give data.source");
  if (sources.size() == 1)
    return std::move(sources[0]);
  if (plan.weights.empty() || phase == DataPhase::eval)
    return std::unique_ptr<SampleSource>(new Joined(std::move(sources)));
  return std::unique_ptr<SampleSource>(
      new Weighted(std::move(sources), plan.weights, seed));
}

/// The numbers of the samples of each class; `labels` has one integer a sample.
static Result<std::map<int64_t, std::vector<int64_t>>>
sortByClass(const SampleSource &labels, DType dtype) {
  std::map<int64_t, std::vector<int64_t>> classes;
  constexpr size_t kMostClasses = 1 << 16;
  std::array<std::byte, sizeof(int64_t)> label = {};
  std::span<std::byte> part(label.data(), traitsOf(dtype).bytes);
  for (int64_t i = 0; i < labels.sampleCount(); ++i) {
    if (Status status = labels.read(/*epoch=*/0, i, std::span(&part, 1));
        !status.ok())
      return status;
    int64_t value = 0; // little-endian; what is negative is a class, too
    std::memcpy(&value, part.data(), part.size());
    classes[value].push_back(i);
    if (classes.size() > kMostClasses)
      return makeError(Code::Usage, "data.balance: there are more than ",
                       kMostClasses, " classes");
  }
  return classes;
}

/// As many samples of each class.
static Opened balance(const DataPlan &plan, std::unique_ptr<SampleSource> whole,
                      std::span<const BatchTensor> tensors, uint64_t seed) {
  auto found = std::ranges::find(tensors, plan.balance, &BatchTensor::name);
  if (found == tensors.end() || found->shape.size() != 1 ||
      traitsOf(found->dtype).kind == DTypeKind::Float)
    return makeError(Code::Usage, "data.balance is '", plan.balance,
                     "', expected an input of one integer a sample");
  if (!plan.weights.empty())
    return Status(Code::Usage, "data.balance does not go with data.weights");
  auto labels =
      openSources(plan, DataPhase::train, std::span(&*found, 1), seed,
                  plan.skipsBad ? std::make_shared<SkippedSamples>() : nullptr);
  if (!labels.ok())
    return labels;
  auto classes = sortByClass(**labels, found->dtype);
  if (!classes.ok())
    return classes.takeStatus();
  std::shared_ptr<const SampleSource> shared = std::move(whole);
  std::vector<std::unique_ptr<SampleSource>> sources;
  for (auto &[label, numbers] : *classes)
    sources.push_back(std::make_unique<Subset>(shared, std::move(numbers)));
  std::vector<double> weights(sources.size(), 1);
  return std::unique_ptr<SampleSource>(
      new Weighted(std::move(sources), weights, seed));
}

Opened runtime::openData(const DataPlan &plan, DataPhase phase,
                         std::span<const BatchTensor> tensors, uint64_t seed,
                         std::shared_ptr<SkippedSamples> skipped) {
  if (Status status = checkNames(plan, tensors); !status.ok())
    return status;
  auto described = describe(plan, phase, tensors);
  auto source = openSources(plan, phase, described, seed, std::move(skipped));
  if (!source.ok() || plan.balance.empty() || phase == DataPhase::eval)
    return source;
  return balance(plan, std::move(*source), described, seed);
}

std::unique_ptr<SampleSource>
runtime::applyPlan(const DataPlan &plan, DataPhase phase,
                   std::unique_ptr<SampleSource> source,
                   std::shared_ptr<SkippedSamples> skipped, size_t number) {
  if (plan.split > 0)
    source = takePart(std::move(source), plan.split, phase);
  if (plan.skipsBad)
    source = skipDamaged(std::move(source), number, std::move(skipped));
  return source;
}

/// The bytes of the largest batch; at least 1.
static uint64_t countBytes(std::span<const BatchTensor> tensors) {
  uint64_t bytes = 0;
  for (const BatchTensor &tensor : tensors) {
    uint64_t most = bytesOf(tensor.dtype, tensor.shape).value_or(0);
    for (const auto &shape : tensor.variants)
      most = std::max(most, bytesOf(tensor.dtype, shape).value_or(0));
    bytes += most;
  }
  return std::max<uint64_t>(bytes, 1);
}

static Result<BatchOrder> orderBatches(const SampleSource &source,
                                       std::span<const BatchTensor> tensors,
                                       const DataPlan &plan, uint64_t seed,
                                       bool shuffles) {
  bool fills = haveWeights(tensors);
  if (tensors.empty() || tensors[0].shape[0] == 0)
    return Status(Code::Usage, "a batch takes no samples");
  if (tensors[0].variants.empty())
    return BatchOrder(source.sampleCount(), tensors[0].shape[0],
                      SampleOrder(source.sampleCount(), seed, shuffles), fills);
  auto sorted = sortBySize(source, tensors, plan.skipsBad);
  if (!sorted.ok())
    return sorted.takeStatus();
  return BatchOrder(std::move(*sorted), seed, shuffles, fills);
}

Result<BatchLoader> runtime::makeLoader(const DataPlan &plan, DataPhase phase,
                                        std::unique_ptr<SampleSource> source,
                                        std::span<const BatchTensor> tensors,
                                        uint64_t seed, bool shuffles) {
  auto order = orderBatches(*source, tensors, plan, seed, shuffles);
  if (!order.ok())
    return order.takeStatus();
  LoaderOptions options = {.workers = plan.workers};
  options.slots = plan.depth.value_or(options.slots);
  if (phase == DataPhase::train && !plan.mixing.empty()) {
    auto mixer = BatchMixer::make(plan.mixing, tensors, seed);
    if (!mixer.ok())
      return mixer.takeStatus();
    options.mixer = std::make_shared<BatchMixer>(std::move(*mixer));
  }
  if (plan.memory) {
    int64_t most = *plan.memory / int64_t(countBytes(tensors));
    if (most < plan.depth.value_or(2))
      return makeError(Code::Usage, "data.memory is ", *plan.memory,
                       " bytes, a batch takes ", countBytes(tensors), ", and ",
                       plan.depth.value_or(2), " are needed");
    options.slots = int(std::min<int64_t>(options.slots, most));
  }
  return BatchLoader::create(std::move(source), tensors, std::move(*order),
                             options);
}
