//===- Differentiate.h - Whose gradients may be asked for -------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_DIFFERENTIATE_H
#define TCC_COMPILER_PASSES_GRAPH_DIFFERENTIATE_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace tcc {

/// Why `module` cannot have the gradients of result `of` of @main with respect
/// to the arguments `wrt`; empty if it may, as far as names and types tell.
std::vector<std::string> findGradientProblems(mlir::ModuleOp module,
                                              llvm::StringRef of,
                                              llvm::ArrayRef<std::string> wrt);

} // namespace tcc

#endif // TCC_COMPILER_PASSES_GRAPH_DIFFERENTIATE_H
