//===- EmitIndices.h - Indices that are affine in loops ---------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_EMITINDICES_H
#define TCC_COMPILER_CODEGEN_REGION_EMITINDICES_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "mlir/IR/AffineMap.h"

namespace tcc::codegen {

/// The results of `map`, sums of multiples of its dimensions, where these are
/// `loops`.
llvm::SmallVector<mlir::Value>
emitIndices(KernelBuilder &b, mlir::AffineMap map, mlir::ValueRange loops);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_EMITINDICES_H
