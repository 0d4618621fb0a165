//===- Product.h - Ops as products of matrices ------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_INTERFACES_PRODUCT_H
#define TCC_DIALECTS_GRAPH_INTERFACES_PRODUCT_H

#include "dialects/graph/Panels.h"
#include "dialects/graph/Shape.h"

namespace tcc::graph {

/// Where the elements of one side of a product lie.
struct ProductSide {
  unsigned operand = 0; ///< the number of the op's operand
  /// The map of all loops to its indices, or to those of the axes before
  /// panels.
  mlir::AffineMap map;
  /// `padded` axes from `firstPadded` on may have indices outside of the
  /// operand, which is zero there.
  int64_t firstPadded = 0, padded = 0;
  /// Set if the last axes are panels, [panels, depth, columns of a panel].
  std::optional<Packing> panels = {};
};

/// The operand whose sums along the depth are the second result of an op.
enum class ProductSums { none, lhs, rhs };

/// A product of matrices for each batch, whose sides are loops:
///
///   result[batch, row, column] = sum over depth of lhs[batch, row, depth] *
///                                rhs[batch, depth, column]
///
/// Loops are numbered in the order of the lists, outer ones first.
struct ProductView {
  Extents batch, rows, columns, depth;
  ProductSide lhs, rhs;   ///< no columns index lhs, no rows rhs
  mlir::AffineMap result; ///< of all loops to indices of the first result
  ProductSums sums = ProductSums::none; ///< of one matrix of one loop a side
  /// Where rhs is zero, a mask for each of equal parts of the columns: bit i
  /// says it of iteration i of all loops of the depth but the innermost.
  llvm::ArrayRef<int64_t> zeros;

  size_t countLoops() const {
    return batch.size() + rows.size() + columns.size() + depth.size();
  }
};

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_INTERFACES_PRODUCT_H
