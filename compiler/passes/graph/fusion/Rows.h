//===- Rows.h - What a row kernel keeps and reduces -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H

#include "dialects/graph/GraphOps.h"
#include <optional>

namespace tcc::fusion {

/// Adjacent axes that are all reduced, or all kept. Axes of extent 1 are left
/// out, so that shapes which differ by reshapes compare equal.
struct Segment {
  bool isReduced;
  mlir::AffineExpr extent;
};
using Rows = llvm::SmallVector<Segment, 4>;

Rows getRows(mlir::ArrayRef<mlir::AffineExpr> extents,
             llvm::function_ref<bool(int64_t)> reduced);

bool isEqual(mlir::ArrayRef<Segment> lhs, mlir::ArrayRef<Segment> rhs);

/// The reduced axes of a row op, whose loops are the axes of its first operand.
std::optional<mlir::SmallVector<int64_t>> getReducedAxes(mlir::Operation *op);

/// True if result elements are combined from a whole row, so that there is one
/// a row; a composite like softmax has one for each element of the row.
bool isOnePerRow(mlir::Operation *op);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H
