//===- ExternalKernel.h - Kernels that come as code --------------*- C++
//-*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_EXTERNALKERNEL_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_EXTERNALKERNEL_H

#include "dialects/graph/GraphOps.h"

namespace tcc::cpu {

/// The kernel for CPUs that a region's op has as code; null if it has none.
graph::CustomKernelAttr findExternal(graph::FusedOp region);

/// What the function of `kernel` is called in images, where no other is called
/// so.
std::string getExternalName(graph::CustomKernelAttr kernel);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_EXTERNALKERNEL_H
