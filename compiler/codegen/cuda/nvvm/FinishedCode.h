//===- FinishedCode.h - Kernels that come as PTX or cubins ------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_FINISHEDCODE_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_FINISHEDCODE_H

#include "compiler/codegen/cuda/nvvm/Arch.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tcc::cuda {

/// Why the text `ptx` has no kernel `symbol` of so many parameters of 64 bits
/// for GPUs from `least` on; empty if it has. All that is wrong is listed.
std::vector<std::string> checkPtx(llvm::StringRef ptx, llvm::StringRef symbol,
                                  const Arch &least, unsigned parameters);

/// The same of machine code for GPUs of the compute capability `number`, as 90
/// for 9.0.
std::vector<std::string> checkCubin(llvm::StringRef cubin,
                                    llvm::StringRef symbol, int number,
                                    unsigned parameters);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_FINISHEDCODE_H
