//===- WalkPlaces.h - Loops over the operands of concatenations -*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_WALKPLACES_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_WALKPLACES_H

#include "mlir/Dialect/SCF/IR/SCF.h"

namespace tcc::cpu {

/// Makes of a loop that reads one of many places, such as the operands of a
/// concatenation, one over the places with one over the elements in it:
///
///     pos = from
///     while (pos < to) {
///       pointer, end = branches at pos
///       for (iv = pos; iv < end; ++iv)
///         ... load(pointer + (iv - pos)) ...
///       pos = end
///     }
///
/// The code is as long for many places as for two. The loop over elements, in
/// which other branches may be left; `loop` as it is if there are few places,
/// if adjacent elements are not adjacent in memory, or if what is loaded is not
/// changed in the same way in all places (widened, say), as where an operand is
/// computed.
mlir::scf::ForOp walkPlaces(mlir::scf::ForOp loop);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_WALKPLACES_H
