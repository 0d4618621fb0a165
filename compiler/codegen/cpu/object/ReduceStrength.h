//===- ReduceStrength.h - Addresses of loops in few registers ---*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_REDUCESTRENGTH_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_REDUCESTRENGTH_H

namespace llvm {
class PassBuilder;
}

namespace tcc::cpu {

/// Adds LLVM's loop strength reduction to the end of its optimiser, for tiles
/// of matrices whose addresses take half of x86's registers or more: what they
/// need besides is kept in one register, where sums would be spilled else. In
/// all other loops addressing modes do as well, and the pass is a quarter of a
/// compilation.
void addStrengthReduction(llvm::PassBuilder &passes);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_REDUCESTRENGTH_H
