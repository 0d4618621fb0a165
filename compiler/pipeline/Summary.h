//===- Summary.h - The figures of a plan ------------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PIPELINE_SUMMARY_H
#define TCC_COMPILER_PIPELINE_SUMMARY_H

#include "tcc/compiler.h"

#include "mlir/IR/BuiltinOps.h"

namespace tcc {

/// Counts what the planned `module` launches, and its arena.
void summarize(mlir::ModuleOp module, CompileReport &report);

/// What the arenas of the planned `module` hold.
std::vector<ArenaUse> getArenaUses(mlir::ModuleOp module);

/// What ranks exchange in an update of the planned `module`.
std::vector<MessageUse> getMessages(mlir::ModuleOp module);

} // namespace tcc

#endif // TCC_COMPILER_PIPELINE_SUMMARY_H
