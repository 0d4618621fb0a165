//===- Rows.h - What a row kernel keeps and reduces -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H

#include "compiler/passes/graph/fusion/Cost.h"
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

/// The rows of an op whose loops are the axes of its first operand, else none.
Rows getRows(mlir::Operation *op);

bool isEqual(mlir::ArrayRef<Segment> lhs, mlir::ArrayRef<Segment> rhs);

/// A panel is a number of neighbouring rows that one task walks over. A kernel
/// that reduces rows can also reduce the columns of panels, if a task holds the
/// sums of all its columns near, and there are tasks enough.
inline constexpr int64_t kMaxPanelRows = 256;
inline constexpr int64_t kMaxPanelColumns = 4096;
inline constexpr int64_t kMaxPanelSums = 4; // reductions of columns

/// Whether `columns` keep and reduce are the columns of such panels.
bool isPanel(mlir::ArrayRef<Segment> columns, const CostModel &model);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H
