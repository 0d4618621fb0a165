//===- Region.h - Whether ops can be one kernel -----------------*- C++ -*-===//
//
// A kernel computes values where they are read. All of it runs over one loop
// space, and each value in it is read in up to three ways:
//
//   elementwise  at the row-major position that the loops are at
//   per row      at the position of the loops that are not reduced (row
//   kernels) anywhere     at other indices: it is recomputed there
//
// A result that a matrix kernel only moves is not read but stored where it lies
// after the move. So are the sums of a panel's columns in a kernel of rows
// (Rows.h).
//
// Ops with loops of their own (KernelOpInterface) cannot be recomputed, so they
// are read elementwise, or per row if they reduce. Reshapes keep row-major
// positions: they are looked through, and are never members.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_REGION_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_REGION_H

#include "compiler/passes/graph/fusion/Cost.h"
#include "compiler/passes/graph/fusion/Members.h"
#include <optional>

namespace tcc::fusion {

enum Access : unsigned {
  kElementwise = 1,
  kPerRow = 2,
  kAnywhere = 4,
  kStored = 8,
  kPerColumn = 16
};

/// Ops that can be one kernel.
struct Region {
  graph::KernelKind kind = graph::KernelKind::pointwise;
  /// The first op that decides the loops; null in pointwise kernels. Of rows,
  /// if the kernel also reduces columns of panels.
  mlir::Operation *anchor = nullptr;
  /// The type of the values that are read elementwise, but for its elements.
  mlir::RankedTensorType space;
  /// The axes of `space` that a row kernel reduces.
  mlir::SmallVector<int64_t> reducedAxes;
  /// The axes of `space` that a row kernel also reduces, for columns of panels.
  mlir::SmallVector<int64_t> panelAxes;
  /// How each member is read: a union of Access.
  mlir::SmallVector<unsigned> access;
  Work work;
  /// Work that countRegion counted: flops, also of what is computed again, and
  /// bytes of what is read, once, and written.
  mlir::AffineExpr flops, bytes;
};

/// A region, or why there is none.
struct Analysis {
  std::optional<Region> region;
  llvm::StringRef refusal;
};

/// Checks that `members` (in block order) can be one kernel of
/// which `results` (values of members) are read outside.
Analysis analyzeRegion(mlir::ArrayRef<mlir::Operation *> members,
                       mlir::ArrayRef<mlir::Value> results, CostModel &model);

/// The same, and counts the region's flops and bytes.
Analysis countRegion(mlir::ArrayRef<mlir::Operation *> members,
                     mlir::ArrayRef<mlir::Value> results, CostModel &model);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_REGION_H
