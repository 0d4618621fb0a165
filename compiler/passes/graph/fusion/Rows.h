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

/// A panel is a number of neighbouring rows that one task walks over. A kernel
/// that reduces rows can also reduce the columns of panels, if it has enough of
/// them to be parallel and the sums of all columns fit into registers.
inline constexpr int64_t kMaxPanelRows = 256;
inline constexpr int64_t kMinPanels = 8;
inline constexpr int64_t kMaxPanelColumns = 8192;
inline constexpr int64_t kMaxPanelSums = 4; // reductions of columns

/// Whether `columns` keep and reduce are the columns of such panels.
bool isPanel(mlir::ArrayRef<Segment> columns,
             llvm::ArrayRef<graph::SymbolAttr> symbols);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H
