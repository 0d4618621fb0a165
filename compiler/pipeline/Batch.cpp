#include "compiler/pipeline/Batch.h"

#include "llvm/ADT/STLExtras.h"
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

namespace tcc {

std::vector<int64_t> getBatches(std::optional<int64_t> global) {
  constexpr int64_t kMost = 1 << 16;
  std::vector<int64_t> batches(std::min(global.value_or(kMost), kMost));
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

} // namespace tcc
