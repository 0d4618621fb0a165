//===- BucketSizes.h - Sizes that pad little --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_BUCKETSIZES_H
#define TCC_RUNTIME_DATA_BUCKETSIZES_H

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

namespace tcc::runtime {

/// How many samples have each length.
using Lengths = std::map<int64_t, int64_t>;

/// A size, and the samples that it is the smallest for.
struct BucketSize {
  int64_t size, samples;
};

/// The sizes, at most `count`, multiples of `multiple` and ascending, that pad
/// samples least where each is of the smallest size that it fits: the minimum,
/// by a dynamic program over n lengths. Its costs satisfy the quadrangle
/// inequality, so that it takes count * n * log n steps (Galil, Park: Dynamic
/// programming with convexity, concavity and sparsity, 1992). `lengths` is not
/// empty, `count` and `multiple` are at least 1.
std::vector<BucketSize> chooseSizes(const Lengths &lengths, size_t count,
                                    int64_t multiple);

/// The share of what samples of these sizes are computed at that is padding.
double paddingOf(const Lengths &lengths, const std::vector<BucketSize> &sizes);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_BUCKETSIZES_H
