//===- ExternalBitcode.h - Kernels that come as LLVM bitcode ----*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_EXTERNALBITCODE_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_EXTERNALBITCODE_H

#include "mlir/Support/LLVM.h"
#include "llvm/IR/Module.h"
#include <string>
#include <vector>

namespace tcc::cuda {

/// LLVM bitcode for nvptx64 with the kernel `symbol`, which stands in for a
/// function `name` of pointers and i64 numbers. A parameter that is a double
/// takes the bits of its number.
struct ExternalBitcode {
  std::string name, symbol;
  llvm::StringRef bytes; ///< lives longer
};

/// Why `code` cannot be linked where it takes `buffers` pointers and then
/// `numbers`; empty if it can. All that is wrong is listed.
std::vector<std::string> checkBitcode(const ExternalBitcode &code,
                                      unsigned buffers, unsigned numbers);

/// Links `code` into `module`, which declares its function, so that what calls
/// it holds its instructions, for whatever machine `module` is.
llvm::Error linkBitcode(llvm::Module &module, const ExternalBitcode &code);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_EXTERNALBITCODE_H
