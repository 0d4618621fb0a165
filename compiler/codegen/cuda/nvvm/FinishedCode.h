//===- FinishedCode.h - Kernels that come as PTX or cubins ------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_FINISHEDCODE_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_FINISHEDCODE_H

#include "compiler/codegen/cuda/nvvm/Arch.h"
#include "llvm/ADT/StringRef.h"
#include <string>
#include <vector>

namespace tcc::cuda {

/// What a kernel is launched with.
struct LaunchShape {
  unsigned parameters; ///< each of 64 bits
  unsigned threads;    ///< of a block
};

/// Why the text `ptx` has no kernel `symbol` that can be launched so on GPUs
/// from `least` on; empty if it has. All that is wrong is listed.
std::vector<std::string> checkPtx(llvm::StringRef ptx, llvm::StringRef symbol,
                                  const Arch &least, const LaunchShape &launch);

/// The same of machine code for GPUs of the compute capability `number`, as 90
/// for 9.0.
std::vector<std::string> checkCubin(llvm::StringRef cubin,
                                    llvm::StringRef symbol, int number,
                                    const LaunchShape &launch);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_FINISHEDCODE_H
