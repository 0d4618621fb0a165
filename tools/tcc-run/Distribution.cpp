#include "tools/tcc-run/Distribution.h"

#include "tools/tcc-run/Elements.h"

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr int kBuckets = 30;

namespace {

/// What the first pass over the elements finds.
struct Extent {
  double least = INFINITY, most = -INFINITY; ///< of the finite ones
  double count = 0;                          ///< finite ones
  double squares = 0;                        ///< the sum of all
};

} // namespace

/// `load(i)` is element i of `size`.
template <typename Load>
static Extent findExtent(size_t size, const Load &load) {
  Extent extent;
  for (size_t i = 0; i < size; ++i) {
    double value = load(i);
    extent.squares += value * value;
    if (!std::isfinite(value))
      continue;
    extent.least = std::min(extent.least, value);
    extent.most = std::max(extent.most, value);
    ++extent.count;
  }
  return extent;
}

static std::vector<Bucket> divide(const Extent &extent, double width) {
  std::vector<Bucket> buckets(kBuckets);
  for (int i = 0; i < kBuckets; ++i)
    buckets[i] = {extent.least + i * width, extent.least + (i + 1) * width, 0};
  buckets.back().end = extent.most;
  return buckets;
}

template <typename Load>
static Distribution measure(size_t size, const Load &load) {
  Extent extent = findExtent(size, load);
  Distribution found;
  found.norm = std::sqrt(extent.squares);
  if (extent.count == 0)
    return found;
  // Divided first: the difference of two numbers may be infinite.
  double width = extent.most / kBuckets - extent.least / kBuckets;
  if (!(width > 0)) {
    found.buckets = {{extent.least - 0.5, extent.most + 0.5, extent.count}};
    return found;
  }
  found.buckets = divide(extent, width);
  double first = extent.least / width;
  for (size_t i = 0; i < size; ++i) {
    double value = load(i);
    if (!std::isfinite(value))
      continue;
    int place = static_cast<int>(value / width - first);
    ++found.buckets[std::clamp(place, 0, kBuckets - 1)].count;
  }
  return found;
}

Distribution tools::measure(DType dtype, std::span<const std::byte> bytes) {
  size_t size = bytes.size() / traitsOf(dtype).bytes;
  // What most parameters are is read without asking each element its type.
  if (dtype == DType::f32)
    return ::measure(size, [&](size_t i) -> double {
      float value;
      std::memcpy(&value, bytes.data() + i * sizeof(value), sizeof(value));
      return value;
    });
  return ::measure(
      size, [&](size_t i) { return loadElement(dtype, bytes.data(), i); });
}
