//===- CudaTarget.h - NVIDIA's GPUs -----------------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_CUDATARGET_H
#define TCC_COMPILER_CODEGEN_CUDA_CUDATARGET_H

#include "compiler/target/Target.h"

namespace tcc::cuda {

/// The target `cuda`.
const Target &getCudaTarget();

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_CUDATARGET_H
