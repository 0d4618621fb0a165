//===- BindSymbols.h - A module at some sizes -------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_BINDSYMBOLS_H
#define TCC_COMPILER_PASSES_GRAPH_BINDSYMBOLS_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace tcc {

/// Gives symbols of `module` their values, which lie in their ranges, by name:
/// types and size expressions become those of these sizes. Fails after an error
/// where a value is out of range or no symbol has the name. Ops stay: what
/// follows from the sizes is for simplification.
mlir::LogicalResult bindSymbols(mlir::ModuleOp module,
                                const llvm::StringMap<int64_t> &values);

/// Makes variants of @main, one for each of `variants`, which have values for
/// the same symbols: the first is @main, number k is @main.k.
mlir::LogicalResult
bindVariants(mlir::ModuleOp module,
             llvm::ArrayRef<llvm::StringMap<int64_t>> variants);

} // namespace tcc

#endif // TCC_COMPILER_PASSES_GRAPH_BINDSYMBOLS_H
