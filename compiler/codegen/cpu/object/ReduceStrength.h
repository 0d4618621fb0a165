//===- ReduceStrength.h - Addresses of loops in few registers ---*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_OBJECT_REDUCESTRENGTH_H
#define TCC_COMPILER_CODEGEN_CPU_OBJECT_REDUCESTRENGTH_H

namespace llvm {
class PassBuilder;
}

namespace tcc::cpu {

/// Adds LLVM's loop strength reduction to the end of its optimiser, for the
/// loops whose addresses take most of x86's registers: with one more for each
/// induction variable sums of a matrix tile would be spilled. In all other
/// loops addressing modes do as well, and the pass is a quarter of a
/// compilation.
void addStrengthReduction(llvm::PassBuilder &passes);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_OBJECT_REDUCESTRENGTH_H
