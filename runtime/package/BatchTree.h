//===- BatchTree.h - Batches added up in one binary tree --------*- C++ -*-===//
//
// An update of L batches whose sum has the same bits by any number of ranks:
// see Program.exact. The leaves of the tree are the places of the batches in
// bit-reversed order, so that the places r, r + W, ... of rank r of W are the
// leaves of one subtree.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_BATCHTREE_H
#define TCC_RUNTIME_PACKAGE_BATCHTREE_H

#include <cstdint>

namespace tcc::format {

/// What a package with such a tree requires of the runtime.
inline constexpr char kExactWord[] = "exact";

/// The place of a leaf, one of `leaves`: its bits in reverse order. Rank r has
/// the places r + placeOfLeaf(0), r + placeOfLeaf(1), ..., in this order.
constexpr int64_t placeOfLeaf(int64_t leaf, int64_t leaves) {
  int64_t place = 0;
  for (int64_t bit = 1; bit < leaves; bit *= 2)
    place = 2 * place + (leaf / bit) % 2;
  return place;
}

} // namespace tcc::format

#endif // TCC_RUNTIME_PACKAGE_BATCHTREE_H
