//===- Assembler.h - PTX to machine code ------------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_NVVM_ASSEMBLER_H
#define TCC_COMPILER_CODEGEN_CUDA_NVVM_ASSEMBLER_H

#include "compiler/codegen/cuda/nvvm/Arch.h"
#include "llvm/Support/Error.h"
#include <memory>
#include <string>
#include <vector>

namespace tcc::cuda {

/// What the machine code of a function uses.
struct FunctionResources {
  std::string name;
  unsigned registers = 0;   ///< of a thread; 0 for functions that are called
  unsigned stackBytes = 0;  ///< local memory of a thread
  unsigned spillBytes = 0;  ///< stored and loaded
  unsigned sharedBytes = 0; ///< of a block
};

struct Cubin {
  std::vector<char> bytes;
  std::vector<FunctionResources> functions;
};

/// An assembler of NVIDIA's toolkit. Thread-safe.
class Assembler {
public:
  /// ptxas, else nvJitLink, which takes a few registers more. If there is
  /// neither, the error says where it was looked for.
  static llvm::Expected<std::unique_ptr<Assembler>> find();
  /// ptxas, run as a program.
  static llvm::Expected<std::unique_ptr<Assembler>> findPtxas();
  /// The library nvJitLink, opened into this process.
  static llvm::Expected<std::unique_ptr<Assembler>> findNvJitLink();

  virtual ~Assembler() = default;
  virtual llvm::Expected<Cubin> assemble(llvm::StringRef ptx,
                                         const Arch &arch) const = 0;
};

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_NVVM_ASSEMBLER_H
