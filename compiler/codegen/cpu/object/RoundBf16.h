//===- RoundBf16.h - Rounding by an instruction, in vectors -----*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_ROUNDBF16_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_ROUNDBF16_H

namespace llvm {
class Module;
}

namespace tcc::cpu {

/// Makes each fptrunc of a float to bfloat a call of a function of which LLVM's
/// vectorisers know that it has vectors: of the conversion itself they think
/// that it has short ones only.
void callRounding(llvm::Module &module);

/// Makes the calls, of numbers or vectors, the instruction of AVX512-BF16.
void inlineRounding(llvm::Module &module);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_ROUNDBF16_H
