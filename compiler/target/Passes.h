//===- Passes.h - What a module is compiled for -----------------*- C++ -*-===//
#ifndef TCC_COMPILER_TARGET_PASSES_H
#define TCC_COMPILER_TARGET_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tcc {

#define GEN_PASS_DECL
#include "compiler/target/Passes.h.inc"

/// Makes every pass here known to tcc-opt by its flag.
#define GEN_PASS_REGISTRATION
#include "compiler/target/Passes.h.inc"

} // namespace tcc

#endif // TCC_COMPILER_TARGET_PASSES_H
