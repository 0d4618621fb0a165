//===- Distribution.h - How the elements of a tensor lie --------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_DISTRIBUTION_H
#define TCC_TOOLS_TCCRUN_DISTRIBUTION_H

#include "runtime/package/DType.h"

#include <span>
#include <vector>

namespace tcc::tools {

struct Bucket {
  double begin, end;
  double count; ///< elements in [begin, end), in [begin, end] of the last one
};

struct Distribution {
  double norm = 0; ///< sqrt(sum x^2)
  /// At most 30 of the same width from the smallest finite element to the
  /// largest; one around it where all are equal, none without one. What is not
  /// finite is in none.
  std::vector<Bucket> buckets;
};

/// `bytes` are elements of `dtype`, one behind the other.
Distribution measure(runtime::DType dtype, std::span<const std::byte> bytes);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_DISTRIBUTION_H
