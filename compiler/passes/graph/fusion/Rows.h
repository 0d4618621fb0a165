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

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_ROWS_H
