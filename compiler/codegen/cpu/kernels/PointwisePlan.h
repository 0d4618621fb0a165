//===- PointwisePlan.h - The loops of a pointwise kernel --------*- C++ -*-===//
//
// The rows of a pointwise kernel, and the tiles in which it computes where a
// tensor is transposed (PointwiseKernel.cpp).
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_POINTWISEPLAN_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_POINTWISEPLAN_H

#include "compiler/codegen/cpu/kernels/MergedAxis.h"
#include "dialects/graph/Strides.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using mlir::Value;
using mlir::ValueRange;

/// Rows of so few elements are written out: the loop over rows vectorises.
inline constexpr int64_t kShortRow = 4;

/// Most rows and columns of a tile.
inline constexpr int64_t kTile = 16;

struct PointwisePlan {
  graph::Extents outer;
  mlir::AffineExpr inner;
  /// The axis that is the last one before the ops `transposes`, whose results
  /// have the shape of the space.
  std::optional<int64_t> tileAxis;
  int64_t tileRows = kTile, tileColumns = kTile;
  llvm::SmallVector<graph::TransposeOp> transposes;
  /// The axis of tiles in what each transpose reads; all have equal periods,
  /// which are whole tiles, or there are none.
  llvm::SmallVector<MergedAxis> merged;
  /// The rows of a tile are one place of all periods, from the last one on if
  /// they are turned round: adjacent f32 of inputs.
  bool hasLines = false, isTurned = false;
  /// Elements at each place of the inner loop; the last axis if not 1.
  int64_t unit = 1;
  /// Rows, or blocks of them along the axis of tiles.
  int64_t rowsPerTask = 1;
  /// Elements of a row in one task; 0: all.
  int64_t chunk = 0;

  PointwisePlan(graph::FusedOp region,
                llvm::ArrayRef<graph::SymbolAttr> symbols);
  graph::Extents getRowExtents() const {
    graph::Extents extents = outer;
    if (tileAxis)
      extents[*tileAxis] = extents[*tileAxis].ceilDiv(tileRows);
    return extents;
  }
  mlir::AffineExpr getRows() const {
    return graph::getNumElements(getRowExtents(), inner.getContext());
  }
  mlir::AffineExpr getTasks() const {
    return chunk ? getRows() * inner.ceilDiv(chunk)
                 : getRows().ceilDiv(rowsPerTask);
  }

private:
  void findTransposes(graph::FusedOp region);
  void findMergedAxes();
  bool areLines(size_t transpose) const;
};

/// What a transpose reads of f32 in memory; it may be rounded once.
graph::StridedInput traceFloats(graph::TransposeOp op, const MergedAxis &axis);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_POINTWISEPLAN_H
