//===- ScanPlan.h - A running combination along an axis ---------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_SCANPLAN_H
#define TCC_COMPILER_CODEGEN_REGION_SCANPLAN_H

#include "dialects/graph/GraphOps.h"

namespace tcc::codegen {

/// What scans share on every target.
struct ScanPlan {
  graph::CumulativeOp op;
  graph::Extents rows;     // of all axes but the walked one
  mlir::AffineExpr extent; // of that

  explicit ScanPlan(graph::FusedOp region);
  mlir::AffineExpr getRowCount() const {
    return graph::getNumElements(rows, extent.getContext());
  }
  /// The indices of step `step` of a row; those of the row are `row`.
  llvm::SmallVector<mlir::Value> getIndices(mlir::OpBuilder &b,
                                            mlir::ValueRange row,
                                            mlir::Value step,
                                            mlir::Value extent);
  mlir::Value emitNeutral(mlir::OpBuilder &b, mlir::Location loc);
  mlir::Value emitCombine(mlir::OpBuilder &b, mlir::Location loc,
                          mlir::Value lhs, mlir::Value rhs);
};

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_SCANPLAN_H
