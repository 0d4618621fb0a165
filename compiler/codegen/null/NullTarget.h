//===- NullTarget.h - A target without code ---------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_NULL_NULLTARGET_H
#define TCC_COMPILER_CODEGEN_NULL_NULLTARGET_H

#include "compiler/target/Target.h"

namespace tcc::null {

/// The target `null` of tests of passes: a machine in which all figures are 1,
/// kernels of one task each, and no code.
const Target &getNullTarget();

} // namespace tcc::null

#endif // TCC_COMPILER_CODEGEN_NULL_NULLTARGET_H
