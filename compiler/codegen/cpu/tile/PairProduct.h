//===- PairProduct.h - Products of pairs of bf16 ----------------*- C++ -*-===//
//
// Matrices of bf16 are multiplied as matrices of pairs: an i32 holds neighbours
// in k, the lower one in the lower half, and one step over k takes both. It is
// one instruction with AVX512-BF16 and two fused multiply-adds without, in the
// same order and with the same roundings; the instruction takes denormals as
// zeros.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_PAIRPRODUCT_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_PAIRPRODUCT_H

#include "compiler/codegen/cpu/tile/MatrixTile.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

/// (sum + x1 * y1) + x0 * y0, of vectors of pairs and f32 sums.
Value multiplyPairs(KernelBuilder &b, Value x, Value y, Value sum,
                    VectorUnit unit);

/// The bits of the elements of a matrix of bf16 as pairs: its rows lie along k
/// and hold whole ones.
Memory asPairs(Memory matrix);

/// Two rows of 16-bit elements, the lower k first, as one of pairs.
Value interleave(KernelBuilder &b, Value low, Value high);

/// Two f32 that are bf16 as a pair.
Value makePair(KernelBuilder &b, Value low, Value high);

/// Stores a vector of 16-bit elements as the halves of pairs that `isHigh`
/// says. The lower ones come first: they clear what lies beside them.
void storeHalves(KernelBuilder &b, Value halves, Value isHigh, Memory pairs,
                 Value at, Value mask);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_PAIRPRODUCT_H
