//===- CpuTarget.h - The host's CPU -----------------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_CPUTARGET_H
#define TCC_COMPILER_CODEGEN_CPU_CPUTARGET_H

#include "compiler/target/Target.h"

namespace tcc::cpu {

/// The target `cpu`.
const Target &getCpuTarget();

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_CPUTARGET_H
