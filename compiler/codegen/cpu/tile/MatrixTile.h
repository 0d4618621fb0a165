//===- MatrixTile.h - The matrix micro-kernel -------------------*- C++ -*-===//
//
// Everything that multiplies matrices on a CPU ends in this one tile: up to
// 6 rows of the left operand times up to 64 columns of the right one, or 12
// times up to 32, summed over a range of k with one fused multiply-add per
// product.
//
// Packed operands have one format for all CPU variants, padded with zeros:
//   left   [ceil(m / r)][k][r], r = 6 or 12
//   right  [ceil(n / 64)][k][64], or one panel of fewer columns
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_MATRIXTILE_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_MATRIXTILE_H

#include "compiler/codegen/cpu/tile/Blocking.h"
#include "compiler/codegen/region/KernelBuilder.h"
#include "dialects/graph/Panels.h"
#include <functional>

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

using graph::Packing;

/// The registers of a CPU variant: those for vectors, and what it has beside.
struct VectorUnit {
  int64_t bytes = 64;
  bool hasPairProducts = false;  // of bf16, as one instruction
  bool hasTileRegisters = false; // of bf16 (TileRegisters.h)

  int64_t lanes(mlir::Type element) const {
    return bytes * 8 / element.getIntOrFloatBitWidth();
  }
};

/// An operand in panels: the element of lane i (a row of the left operand, a
/// column of the right one) of panel p at k lies at
/// base[offset + p * panelStride + i * laneStride + k * kStride].
/// The lanes of the right operand are adjacent. A row-major left matrix is in
/// panels too, with kStride = 1: its elements are read one by one anyway.
struct PanelView {
  Memory base;
  Value offset;
  Value panelStride;
  Value laneStride;
  Value kStride;

  PanelView at(KernelBuilder &b, Value panel, Value k) const;
};

/// The view of packed panels of `width` lanes.
PanelView packedPanels(KernelBuilder &b, Memory base, Value offset,
                       int64_t width, Value depth);

/// How products are formed: operands are widened to `sum`, a product joins
/// its sum in one rounding.
struct Arithmetic {
  mlir::Type sum; // f32, f64 or i32
  bool lhsUnsigned = false;
  bool rhsUnsigned = false;
  Packing packing = {}; // operands are units of so many in k (PackedUnit.h)
};

/// The rows of a tile of the left operand in a run of k: where each starts.
/// Element e of the run is so many elements further.
struct RowRun {
  llvm::SmallVector<Memory> starts;
  Value areZeros = {}; ///< whether all are zeros; null: that is not asked
};

/// The run of that number.
using RowRuns = std::function<RowRun(KernelBuilder &, Value number)>;

/// Whether the right operand is zero in the run of that number.
using RunFilter = std::function<Value(KernelBuilder &, Value number)>;

/// What will be needed soon: the elements of `base` from `offset` on, of which
/// each k fetches `stride` into the second-level cache.
struct Prefetch {
  Memory base;
  Value offset;
  int64_t stride;
};

/// One tile. Element (i, j) of the sums lies at sums[offset + i * 64 + j].
struct MatrixTile {
  PanelView lhs, rhs;   // standing at the tile's first k
  RowRuns lhsRuns = {}; // instead of lhs, if set
  int64_t runLength = 0;
  RunFilter skipsRun = {};   // if set
  Value k = {};              // the first, where there are runs
  Value depth;               // number of k
  int64_t depthMultiple = 1; // depth, k and runLength are multiples of it
  int64_t rows;
  int64_t columns;    // <= kPanelColumns
  int64_t unroll;     // see Blocking
  Value lastRow = {}; // rows past it read it again; null: they may be read
  Memory into = {};
  Value intoOffset = {};
  llvm::SmallVector<Prefetch, 2> ahead = {};
  Memory from = {};
  Value fromOffset = {}; // sums of the k before; null if none are
  Value isFirst = {};    // none are where this is true
};

/// sums[i, j] += lhs[i, k] * rhs[k, j], in the order of k.
void emitTile(KernelBuilder &b, const MatrixTile &tile, Arithmetic arithmetic,
              VectorUnit unit);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_MATRIXTILE_H
