//===- CudaEmitter.h - The code of a package for GPUs -----------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_CUDAEMITTER_H
#define TCC_COMPILER_CODEGEN_CUDA_CUDAEMITTER_H

#include "compiler/codegen/cpu/object/Cpu.h"
#include "compiler/target/Target.h"

namespace tcc::cuda {

/// Emits machine code for each of the architectures that `options` name, PTX
/// for the oldest, and code that `host` emulates.
llvm::Expected<std::unique_ptr<CodeEmitter>>
createCudaEmitter(const Target &target, const CompileOptions &options,
                  const cpu::Cpu &host);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_CUDAEMITTER_H
