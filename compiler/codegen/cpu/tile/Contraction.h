//===- Contraction.h - Generates matrix multiplication kernels --*- C++ -*-===//
//
// out[batch, i, j] = epilogue(sum over k of lhs[batch, i, k] * rhs[batch, k,
// j])
//
// Each sum is one chain of fused multiply-adds from k = 0 upwards, whatever
// the blocks, the tile the element falls into or the CPU: the bits depend on
// the operands alone. Tile registers (TileRegisters.h) have chains of their
// own.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_CONTRACTION_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_CONTRACTION_H

#include "compiler/codegen/cpu/tile/Blocking.h"
#include "compiler/codegen/cpu/tile/MatrixTile.h"
#include <functional>

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

/// The block of an operand that a task packs into its worker scratch: lanes
/// [first, first + count), `width` to a panel, at k in [k, k + depth). Element
/// (lane, k') goes to into[panel * panelSize + (k' - k) * width + lane % width]
/// or, as rows, to into[lane * laneStride + k' - k]. Lanes that fill up the
/// last panel may be anything.
struct PackRequest {
  Value batch;
  Value first, count;
  Value k, depth;
  Memory into;
  int64_t width;
  int64_t panelSize;
  int64_t laneStride;  // of rows
  bool asRows = false; // the operand's packsRows
};

/// The left operand of tile registers as elements that several rows share: row
/// i stands at positionOf(i), position p at p * `size` of the copy, and the
/// units of run r of each row, `size` of them, are runOffset(r) further.
struct RowPositions {
  int64_t size; // units of a position
  int64_t runs; // k of a row are so many runs
  std::function<Value(KernelBuilder &, Value row)> positionOf = {};
  /// Whether a row stands at a position, and which.
  std::function<std::pair<Value, Value>(KernelBuilder &, Value position)>
      rowAt = {};
  /// Copies what rows at positions [first, last] have; returns the offset of
  /// position `first` in the copy, which goes on behind the last row.
  std::function<Value(KernelBuilder &, Value first, Value last, Memory into)>
      pack = {};
  std::function<Value(KernelBuilder &, Value run)> runOffset = {};
};

/// An operand is either read where it lies, as one view or, the left one, in
/// runs of k, or packed by each task for its block (`pack`, into elements of
/// `packedType`), the left one as rows if `packsRows`.
struct MatrixOperand {
  std::function<PanelView(KernelBuilder &, Value batch)> view;
  std::function<void(KernelBuilder &, const PackRequest &)> pack;
  mlir::Type packedType;
  bool packsRows = false;
  std::function<RowRuns(KernelBuilder &, Value batch, ValueRange lanes)> runs =
      {};
  int64_t runLength = 0;
  /// What is in place goes on behind the last row, up to whole tile registers,
  /// with rows that may be anything.
  bool hasSpareRows = false;
  /// If set, instead of `pack`: the right operand is in place then.
  std::optional<RowPositions> positions = {};
  /// If set, for columns of the right operand from `column` on.
  std::function<RunFilter(KernelBuilder &, Value column)> skipsRuns = {};
};

/// Finishes an element: called once for each, in any order.
using EpilogueFunction = std::function<void(KernelBuilder &, Value sum,
                                            Value batch, Value i, Value j)>;

/// Fetches what the epilogue of `count` elements of row i from j on reads and
/// writes.
using PrefetchFunction = std::function<void(KernelBuilder &, Value batch,
                                            Value i, Value j, int64_t count)>;

struct Contraction {
  Value batch, m, n, k;
  MatrixOperand lhs = {}, rhs = {};
  Arithmetic arithmetic = {};
  EpilogueFunction epilogue = {};
  PrefetchFunction prefetchResults = {};
  Blocking blocking = {};
  VectorUnit unit = {};
  /// Rows of a tile register, at most as many as the left operand has in all,
  /// where the caller configures registers and releases them; null:
  /// emitContraction does.
  Value registerRows = {};

  /// Whether products are computed in tile registers.
  bool usesTileRegisters() const;
};

/// Bytes of scratch that a worker needs; packed types are null for operands
/// that are read where they lie.
int64_t contractionScratchBytes(const Blocking &blocking, mlir::Type sum,
                                mlir::Type packedLhs, mlir::Type packedRhs);

/// Emits tasks [firstTask, lastTask); `scratch` is a pointer, aligned as
/// tensors are.
void emitContraction(KernelBuilder &b, const Contraction &contraction,
                     Value firstTask, Value lastTask, Value scratch);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_CONTRACTION_H
