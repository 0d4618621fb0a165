//===- ExternalDeviceCode.h - Kernels that come as code ---------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_EXTERNALDEVICECODE_H
#define TCC_COMPILER_CODEGEN_CUDA_EXTERNALDEVICECODE_H

#include "compiler/codegen/cuda/nvvm/Arch.h"
#include "compiler/codegen/cuda/nvvm/ExternalBitcode.h"
#include "compiler/target/Code.h"
#include "dialects/graph/GraphOps.h"

namespace tcc::cuda {

/// Why `code` cannot be the kernel of `op`; empty if it can. All that is wrong
/// is listed.
std::vector<std::string> checkCode(graph::ExternalKernelOpInterface op,
                                   graph::CustomCodeAttr code);

/// The bitcode that the kernel of `region` calls, for `arch`; nullopt if it
/// calls none, an error if none of its own is for so old a GPU.
mlir::FailureOr<std::optional<ExternalBitcode>>
findBitcode(graph::FusedOp region, const Arch &arch);

/// The finished code of the kernels of `module`, a variant for those of one
/// image; an error if a kernel has none for one of `archs`.
mlir::FailureOr<std::vector<CodeVariant>>
listFinished(mlir::ModuleOp module, llvm::ArrayRef<Arch> archs);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_EXTERNALDEVICECODE_H
