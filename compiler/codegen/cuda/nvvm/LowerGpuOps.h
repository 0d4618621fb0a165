//===- LowerGpuOps.h - gpu dialect to func and nvvm -------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_LOWERGPUOPS_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_LOWERGPUOPS_H

#include "mlir/Pass/Pass.h"

namespace tcc::cuda {

/// Replaces a module's gpu.module by what it holds: gpu.funcs become func.funcs
/// that LLVM takes for kernels, thread and block indices, barriers and shuffles
/// the nvvm dialect's. What is then left of the gpu dialect is an error. From
/// here on a kernel is lowered as one of the host, by the same passes.
///
/// MLIR's own conversion calls libdevice for square roots, roundings and fused
/// multiply-adds, which are instructions, and for functions that we have.
std::unique_ptr<mlir::Pass> createLowerGpuOpsPass();

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_LOWERGPUOPS_H
