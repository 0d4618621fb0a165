//===- Packing.h - Packs operands into panels -------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_PACKING_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_PACKING_H

#include "compiler/codegen/cpu/tile/Contraction.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

/// Computes the element of an operand at a lane (row or column) and k.
using ElementFunction =
    std::function<Value(KernelBuilder &, Value batch, Value lane, Value k)>;

/// An operand whose elements are computed one by one. `lanesAdjacent` tells
/// which neighbour lies next in memory: the next lane or the next k.
MatrixOperand packedElements(ElementFunction element, mlir::Type type,
                             bool lanesAdjacent);

/// A matrix in memory that is packed as it is.
struct MatrixInMemory {
  Memory base;
  std::function<Value(KernelBuilder &, Value batch)> offset;
  Value stride;         // of the index whose neighbours are not adjacent
  Packing packing = {}; // so many rows of k become one of units (PackedUnit.h)
  Value rows = {};      // of k; zeros fill up the last unit. Null: it is whole
};

/// Neighbours in k are adjacent: transposes blocks in registers.
MatrixOperand packedRows(const MatrixInMemory &matrix, VectorUnit unit);

/// Transposes vectors [lane][k] to [k][lane], a power of two of both.
void transpose(KernelBuilder &b, llvm::SmallVectorImpl<Value> &vectors);

/// Neighbouring lanes are adjacent: copies row after row of k.
MatrixOperand packedColumns(const MatrixInMemory &matrix, VectorUnit unit);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_PACKING_H
