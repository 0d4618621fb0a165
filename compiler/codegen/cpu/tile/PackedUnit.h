//===- PackedUnit.h - Neighbours in k as one number -------------*- C++ -*-===//
//
// Where an instruction multiplies and adds several neighbours in k at once,
// operands are matrices of units: an i32 holds a Packing's group of elements,
// the lowest k in the lowest bits, and one step over k takes all of them.
//
// Units of bf16 are pairs. They are one instruction with AVX512-BF16 and two
// fused multiply-adds without, in the same order and with the same roundings;
// the instruction takes denormals as zeros.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_PACKEDUNIT_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_PACKEDUNIT_H

#include "compiler/codegen/cpu/tile/MatrixTile.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

/// What a step over k reads of an operand: an element, or a unit of several.
mlir::Type getUnitType(mlir::Type element, Packing packing);

/// (sum + x1 * y1) + x0 * y0, of vectors of pairs of bf16 and f32 sums.
Value multiplyUnits(KernelBuilder &b, Value x, Value y, Value sum,
                    VectorUnit unit);

/// The bits of a matrix as units: its rows lie along k and hold whole ones.
Memory asUnits(Memory matrix, Packing packing);

/// Rows of 16-bit elements, the lowest k first, as one of units.
Value interleave(KernelBuilder &b, llvm::ArrayRef<Value> rows);

/// f32 that are bf16, the lowest k first, as a unit.
Value makeUnit(KernelBuilder &b, llvm::ArrayRef<Value> elements);

/// Stores a vector of 16-bit elements as the halves of pairs that `isHigh`
/// says. The lower ones come first: they clear what lies beside them.
void storeHalves(KernelBuilder &b, Value halves, Value isHigh, Memory pairs,
                 Value at, Value mask);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_PACKEDUNIT_H
