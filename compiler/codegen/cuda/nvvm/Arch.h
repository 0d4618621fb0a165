//===- Arch.h - The GPUs that code is generated for -------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_ARCH_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_ARCH_H

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace tcc::cuda {

/// A compute capability, as NVIDIA's tools name it.
struct Arch {
  std::string name; ///< "sm_90"
  int number;       ///< 90

  /// The newest one of those that LLVM knows whose PTX runs here.
  Arch getPtxArch() const {
    return number < 90 ? Arch{"sm_80", 80} : Arch{"sm_90", 90};
  }
};

/// Nullopt if `name` is no architecture from sm_80 on, which `error` tells.
std::optional<Arch> parseArch(llvm::StringRef name, std::string &error);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_ARCH_H
