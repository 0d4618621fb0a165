//===- TileRegisters.h - The matrix micro-kernel of AMX ---------*- C++ -*-===//
//
// A MatrixTile of pairs of bf16 by the tile registers of Intel's CPUs (Intel
// SDM vol. 2, TDPBF16PS): up to 32 rows of the left operand times up to 64
// columns of the right one, which is read from the panels that all variants
// share. The left operand must have adjacent k.
//
// An instruction takes 32 k: the even ones are one chain of fused
// multiply-adds, the odd ones another, and the sum of both joins that of the k
// before. What k are left go on as they do without the registers. So bits
// depend on the operands alone, but they are not those of other variants. As
// with AVX512-BF16, denormals are taken as zeros.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_TILEREGISTERS_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_TILEREGISTERS_H

#include "compiler/codegen/cpu/tile/MatrixTile.h"

namespace tcc::cpu {

/// Whether products of so many units of k, null: of enough, are computed in
/// tile registers.
bool usesTileRegisters(const Arithmetic &arithmetic, VectorUnit unit,
                       Value units);

/// Gives registers of the left operand and of sums so many rows, at most
/// kRegisterRows. It takes some 200 ns: once for all tiles of a call.
void configureTileRegisters(KernelBuilder &b, Value rows);

/// Needed before the kernel returns: threads with registers in use cost their
/// operating system more.
void releaseTileRegisters(KernelBuilder &b);

/// Which rows of a MatrixTile the registers hold.
struct RegisterRows {
  int64_t count; ///< of the first register, as configured, or as many as fit
  Value second =
      {};          ///< where those of the other one start; null: there is none
  Value last = {}; ///< of the rows that are wanted
};

/// As emitTile; `tile` has neither runs nor fewer rows than `rows` says.
void emitRegisterTile(KernelBuilder &b, const MatrixTile &tile,
                      const RegisterRows &rows, Arithmetic arithmetic,
                      VectorUnit unit);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_TILEREGISTERS_H
