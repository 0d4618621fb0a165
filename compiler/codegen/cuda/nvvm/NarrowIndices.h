//===- NarrowIndices.h - Indices of 32 bits ---------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_NARROWINDICES_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_NARROWINDICES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tcc::cuda {

/// Says of a kernel's module, in its data layout, that no index and nothing
/// that indices are computed by leaves 32 bits.
void promiseNarrowIndices(mlir::ModuleOp module);

/// Makes i32 of `index` in a module of which that is said: registers of a GPU
/// have 32 bits. Integers of 64 bits that are read from memory become the
/// nearest index there is, so that a check of their range still finds what is
/// wrong.
std::unique_ptr<mlir::Pass> createNarrowIndicesPass();

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_NARROWINDICES_H
