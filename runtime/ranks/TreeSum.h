//===- TreeSum.h - Sums whose bits depend on no transport -------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_TREESUM_H
#define TCC_RUNTIME_RANKS_TREESUM_H

#include "runtime/ranks/Transport.h"

#include <cstddef>
#include <vector>

namespace tcc::runtime {

/// Adds up buffers of ranks in one binary tree over the ranks in bit-reversed
/// order: first those that are half their number apart, then a quarter, and so
/// on, the lower one on the left. The transport gathers pieces, nothing else,
/// so it has no part in the bits. One thread at a time.
class TreeSum {
public:
  /// Bytes of a piece of each rank: what a message takes by itself, 50 us at
  /// 1 GB/s, is a fifth of its time.
  static constexpr size_t kPieceBytes = size_t(256) << 10;

  /// to[i] = sum_r from_r[i], i < count; `from` may be `to`. Code::Usage unless
  /// `size` is a power of two.
  Status add(Transport &transport, int size, const void *from, void *to,
             size_t count, DType dtype);

private:
  std::vector<std::byte> pieces; ///< of all ranks, in their order
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_TREESUM_H
