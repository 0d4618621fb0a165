//===- DescribeLibrary.h - Kernels that NVIDIA's libraries have -*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_DESCRIBELIBRARY_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_DESCRIBELIBRARY_H

#include "compiler/target/Kernel.h"

namespace tcc::cuda {

/// Adds what the kernel of `region` computes as a library knows it, if one
/// does.
void describeForLibrary(graph::FusedOp region, KernelInfo &info);

/// Whether `result` may lie where `input` does though a library computes it: it
/// reads some inputs in an order of its own.
bool canLibraryOverwrite(graph::FusedOp region, unsigned result,
                         unsigned input);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_DESCRIBELIBRARY_H
