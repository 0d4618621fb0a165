//===- Toolkit.h - Files of NVIDIA's toolkit --------------------*- C++ -*-===//
//
// Nothing of the toolkit is linked: what is needed is looked for when it is
// needed, in CUDA_HOME and CUDA_PATH, where PATH has ptxas, where the build
// found a toolkit, and under the usual prefix.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_TOOLKIT_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_TOOLKIT_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"
#include <string>

namespace tcc::cuda {

/// The first file that exists of `paths`, each relative to a toolkit. The error
/// names `what` and the folders that were tried.
llvm::Expected<std::string>
findToolkitFile(llvm::StringRef what, llvm::ArrayRef<llvm::StringRef> paths);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_TOOLKIT_H
