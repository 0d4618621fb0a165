#include "compiler/pipeline/Batch.h"

#include "compiler/pipeline/Chunks.h"
#include "dialects/graph/Shape.h"

#include "llvm/ADT/STLExtras.h"
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

namespace tcc {

std::vector<int64_t> getBatches(std::optional<int64_t> global) {
  std::vector<int64_t> batches(
      std::min(global.value_or(kMostSamples), kMostSamples));
  std::iota(batches.begin(), batches.end(), 1);
  if (global)
    llvm::erase_if(batches,
                   [&](int64_t samples) { return *global % samples != 0; });
  return batches;
}

/// Where the line through the two known numbers of samples that need about
/// `budget` bytes reaches it; with one of them, the line through nothing.
static std::optional<int64_t> guess(const std::map<int64_t, int64_t> &known,
                                    int64_t budget) {
  using Point = std::pair<int64_t, int64_t>;
  std::vector<Point> points(known.begin(), known.end());
  llvm::sort(points, [&](Point a, Point b) {
    return std::pair(std::abs(a.second - budget), a.first) <
           std::pair(std::abs(b.second - budget), b.first);
  });
  points.resize(std::max<size_t>(points.size(), 1));
  Point other = points.size() > 1 ? points[1] : Point();
  auto [samples, bytes] = points[0];
  if ((bytes > other.second) != (samples > other.first) ||
      bytes == other.second)
    return std::nullopt;
  double perSample =
      double(bytes - other.second) / double(samples - other.first);
  return samples + int64_t(double(budget - bytes) / perSample);
}

static std::string describe(llvm::ArrayRef<int64_t> batches, size_t chosen) {
  std::string next = chosen + 1 < batches.size()
                         ? std::to_string(batches[chosen + 1]) + " do not fit"
                         : "no more are tried";
  return std::to_string(batches[chosen]) +
         ", the most samples that the memory budget holds: " + next;
}

BatchChoice findLargestBatch(llvm::ArrayRef<int64_t> batches, int64_t budget,
                             llvm::function_ref<BatchTrial(int64_t)> attempt) {
  constexpr int kMostPoor = 2; // guesses that leave more than half to try
  int poor = 0;
  // One is no proof that the model takes any number.
  size_t fitting = 0, tooLarge = batches.size() + 1; // counts of batches
  size_t next = std::min<size_t>(2, batches.size());
  std::map<int64_t, int64_t> known; // bytes by samples
  while (tooLarge - fitting > 1) {
    size_t before = tooLarge - fitting;
    int64_t samples = batches[next - 1];
    BatchTrial trial = attempt(samples);
    if (trial.result == BatchTrial::Fails)
      return {};
    (trial.result == BatchTrial::Fits ? fitting : tooLarge) = next;
    if (trial.leastBytes > 0)
      known[samples] = trial.leastBytes;
    std::optional<int64_t> guessed = guess(known, budget);
    bool isBounded = tooLarge <= batches.size();
    poor = isBounded && tooLarge - fitting > before / 2 ? poor + 1 : 0;
    if (guessed && poor < kMostPoor)
      next = llvm::upper_bound(batches, *guessed) - batches.begin();
    else
      next = isBounded ? fitting + (tooLarge - fitting) / 2 : 2 * next;
    next = std::clamp(next, fitting + 1, tooLarge - 1);
  }
  if (fitting == 0)
    return {};
  return {batches[fitting - 1], describe(batches, fitting - 1)};
}

// --- Of a model ---

namespace {

/// The programs that were built, of which the largest that fits is kept.
class BatchSearch {
public:
  BatchSearch(const Model &model, const Variant &variant)
      : model(model), variant(variant) {}

  BatchTrial attempt(int64_t samples);

  BuildResult best, last;
  int64_t lastSamples = 0;
  PhaseTimes phases;

private:
  const Model &model;
  const Variant &variant;
};

} // namespace

BatchTrial BatchSearch::attempt(int64_t samples) {
  Variant trial = variant;
  trial.samples = lastSamples = samples;
  last = buildFaster(model, trial);
  phases.add(last.phases);
  int64_t leastBytes = last.leastBytes;
  if (last.isTooLarge())
    return {BatchTrial::TooLarge, leastBytes};
  if (last.getRefusal())
    return {BatchTrial::Fails, leastBytes};
  best = std::move(last);
  return {BatchTrial::Fits, leastBytes};
}

/// The numbers of samples that may be tried and that the model allows.
static std::vector<int64_t> getAllowed(const Model &model,
                                       const train::Recipe &recipe) {
  std::vector<int64_t> batches = getBatches(recipe.batch.global);
  for (graph::SymbolAttr symbol : graph::getSymbols(*model.module))
    if (symbol.getName() == model.batch)
      llvm::erase_if(batches, [&](int64_t samples) {
        return samples < symbol.getMin() || samples > symbol.getMax();
      });
  return batches;
}

BuildResult buildLargestBatch(const Model &model, const Variant &variant,
                              const std::string &recipeFile) {
  BatchSearch search(model, variant);
  search.last.outcome = makeRefusal(
      runtime::Code::Usage, recipeFile + ": batch.micro = 'auto': the batch of "
                                         "the model has no divisor of "
                                         "batch.global in its range");
  auto attempt = [&](int64_t samples) { return search.attempt(samples); };
  BatchChoice choice = findLargestBatch(getAllowed(model, *variant.recipe),
                                        variant.budget->bytes, attempt);
  BuildResult result = std::move(choice.samples ? search.best : search.last);
  result.phases = search.phases;
  if (choice.samples)
    result.notes.push_back(recipeFile + ": batch.micro is " + choice.text);
  else if (Refusal *refusal = std::get_if<Refusal>(&result.outcome);
           !result.isTooLarge())
    refusal->problems.push_back(
        recipeFile + ": tried with " + std::to_string(search.lastSamples) +
        " samples; batch.micro = 'auto' needs inputs whose first dimension is "
        "symbolic and not given by --dim");
  return result;
}

} // namespace tcc
