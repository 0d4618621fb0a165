#include "runtime/data/BucketSizes.h"

#include <algorithm>
#include <limits>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// Costs are numbers that samples have with what pads them.
class SizeChoice {
public:
  SizeChoice(const Lengths &lengths, int64_t multiple);

  std::vector<BucketSize> choose(size_t count);

private:
  /// The cost of sizes [first, last), all as long as the last of them.
  int64_t cost(size_t first, size_t last) const {
    return sizes[last - 1] * (before[last] - before[first]);
  }
  void extend(const std::vector<int64_t> &least, size_t begin, size_t end,
              size_t low, size_t high, std::vector<int64_t> &next,
              std::vector<uint32_t> &splits) const;

  std::vector<int64_t> sizes;  ///< that may be chosen, ascending
  std::vector<int64_t> before; ///< samples that are shorter than each of them
};

} // namespace

SizeChoice::SizeChoice(const Lengths &lengths, int64_t multiple) {
  before.push_back(0);
  for (auto [length, samples] : lengths) {
    int64_t size =
        std::max<int64_t>((length + multiple - 1) / multiple, 1) * multiple;
    if (sizes.empty() || sizes.back() != size) {
      sizes.push_back(size);
      before.push_back(before.back());
    }
    before.back() += samples;
  }
}

/// Finds for each number of sizes in [begin, end] the least cost with one more
/// of them chosen, whose first is in [low, high]: where the middle one splits
/// bounds where the others do.
void SizeChoice::extend(const std::vector<int64_t> &least, size_t begin,
                        size_t end, size_t low, size_t high,
                        std::vector<int64_t> &next,
                        std::vector<uint32_t> &splits) const {
  if (begin > end)
    return;
  size_t middle = begin + (end - begin) / 2, split = low;
  next[middle] = std::numeric_limits<int64_t>::max();
  for (size_t i = low; i <= std::min(high, middle - 1); ++i)
    if (int64_t sum = least[i] + cost(i, middle); sum < next[middle]) {
      next[middle] = sum;
      split = i;
    }
  splits[middle] = uint32_t(split);
  extend(least, begin, middle - 1, low, split, next, splits);
  extend(least, middle + 1, end, split, high, next, splits);
}

std::vector<BucketSize> SizeChoice::choose(size_t count) {
  size_t all = sizes.size();
  count = std::min(count, all);
  std::vector<int64_t> least(all + 1), next(all + 1);
  std::vector<std::vector<uint32_t>> splits(count,
                                            std::vector<uint32_t>(all + 1));
  for (size_t last = 1; last <= all; ++last)
    least[last] = cost(0, last);
  for (size_t k = 1; k < count; ++k) {
    extend(least, k + 1, all, k, all - 1, next, splits[k]);
    least.swap(next);
  }
  std::vector<BucketSize> chosen;
  size_t last = all;
  for (size_t k = count; k-- > 0;) {
    size_t first = k ? splits[k][last] : 0;
    chosen.push_back({sizes[last - 1], before[last] - before[first]});
    last = first;
  }
  std::ranges::reverse(chosen);
  return chosen;
}

std::vector<BucketSize> runtime::chooseSizes(const Lengths &lengths,
                                             size_t count, int64_t multiple) {
  return SizeChoice(lengths, multiple).choose(count);
}

double runtime::paddingOf(const Lengths &lengths,
                          const std::vector<BucketSize> &sizes) {
  int64_t needed = 0, computed = 0;
  for (auto [length, samples] : lengths)
    needed += length * samples;
  for (const BucketSize &size : sizes)
    computed += size.size * size.samples;
  return computed ? double(computed - needed) / double(computed) : 0;
}
