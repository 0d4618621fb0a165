//===- Targets.h - The targets that there are -------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_TARGETS_H
#define TCC_COMPILER_CODEGEN_TARGETS_H

namespace tcc {

/// Makes the targets that kernels can run on known (compiler/target), the host
/// first. Thread-safe.
void registerAllTargets();

} // namespace tcc

#endif // TCC_COMPILER_CODEGEN_TARGETS_H
