//===- TileRegisters.h - The matrix micro-kernel of AMX ---------*- C++ -*-===//
//
// A MatrixTile of pairs of bf16 by the tile registers of Intel's CPUs (Intel
// SDM vol. 2, TDPBF16PS): up to 32 rows of the left operand times up to 64
// columns of the right one, which is read from the panels that all variants
// share. The left operand must have adjacent k.
//
// An instruction takes 32 k: the even ones are one chain of fused
// multiply-adds, the odd ones another, and the sum of both joins that of the k
// before. What k are left are the last ones of an instruction whose operands
// are zeros otherwise. So bits depend on the operands alone, but they are not
// those of other variants. As with AVX512-BF16, denormals are taken as zeros.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_TILEREGISTERS_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_TILEREGISTERS_H

#include "compiler/codegen/cpu/tile/MatrixTile.h"

namespace tcc::cpu {

/// Whether products of so many units of k are computed in tile registers: if
/// they are known, and fill half an instruction.
bool usesTileRegisters(const Arithmetic &arithmetic, VectorUnit unit,
                       Value units);

/// Gives registers of the left operand and of sums so many rows, at most
/// kRegisterRows. It takes some 200 ns: once for all tiles of a call.
void configureTileRegisters(KernelBuilder &b, Value rows);

/// Needed before the kernel returns: threads with registers in use cost their
/// operating system more.
void releaseTileRegisters(KernelBuilder &b);

/// The k of rows as runs of whole instructions, if `count` > 0.
struct RegisterRuns {
  int64_t count = 0, length = 0; ///< units of a run
  /// Where a run begins in each row.
  std::function<Value(KernelBuilder &, Value run)> offset = {};
};

/// Which rows of a MatrixTile the registers hold.
struct RegisterRows {
  /// Where those of the other register start; null: there is none.
  Value second = {};
  RegisterRuns runs = {};
  /// What is left of k as packLastUnits leaves it, for the rows from the first
  /// one on, and for the columns. Null: whole instructions take all k.
  Memory lastOfRows = {}, lastOfColumns = {};
};

/// Stores what whole instructions leave of `depth` units of a row, behind
/// zeros.
void packLastUnits(KernelBuilder &b, Memory row, Value depth, Memory into);

/// The same of a panel that stands at its first k: rows of kPanelColumns. Zeros
/// are there already.
void packLastUnits(KernelBuilder &b, const PanelView &panel, int64_t columns,
                   Value depth, int64_t count, Memory into);

/// As emitTile; `tile` has no runs of its own, nor fewer rows than `rows` says.
void emitRegisterTile(KernelBuilder &b, const MatrixTile &tile,
                      const RegisterRows &rows);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_TILEREGISTERS_H
