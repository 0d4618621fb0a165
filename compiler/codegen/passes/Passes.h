//===- Passes.h - Code generation as passes, for tests ----------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_PASSES_PASSES_H
#define TCC_COMPILER_CODEGEN_PASSES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tcc {

#define GEN_PASS_DECL
#include "compiler/codegen/passes/Passes.h.inc"

/// Makes every pass here known to tcc-opt by its flag.
#define GEN_PASS_REGISTRATION
#include "compiler/codegen/passes/Passes.h.inc"

} // namespace tcc

#endif // TCC_COMPILER_CODEGEN_PASSES_PASSES_H
