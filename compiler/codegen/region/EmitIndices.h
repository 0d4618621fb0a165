//===- EmitIndices.h - Indices that are affine in loops ---------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_EMITINDICES_H
#define TCC_COMPILER_CODEGEN_REGION_EMITINDICES_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "mlir/IR/AffineMap.h"

namespace tcc::codegen {

/// The results of `map`, which has no symbols, where its dimensions are
/// `loops`. What is divided is not negative.
llvm::SmallVector<mlir::Value>
emitIndices(KernelBuilder &b, mlir::AffineMap map, mlir::ValueRange loops);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_EMITINDICES_H
