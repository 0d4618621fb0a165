//===- Passes.h - Passes over the exec dialect ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_PASSES_H
#define TCC_COMPILER_PASSES_EXEC_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace tcc {

#define GEN_PASS_DECL
#include "compiler/passes/exec/Passes.h.inc"

/// Buffers and what is started get their places and lanes: the passes that
/// decide how many bytes an entry point needs once commands have their order.
void addMemoryPlan(mlir::OpPassManager &pm);

/// Makes every pass here known to tcc-opt by its flag.
#define GEN_PASS_REGISTRATION
#include "compiler/passes/exec/Passes.h.inc"

} // namespace tcc

#endif // TCC_COMPILER_PASSES_EXEC_PASSES_H
