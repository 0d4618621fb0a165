//===- Variants.h - A model's function at several sizes ---------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_VARIANTS_H
#define TCC_DIALECTS_GRAPH_VARIANTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace tcc::graph {

/// The model at each of its sizes, in order: @main, @main.1, @main.2 and so on.
llvm::SmallVector<mlir::func::FuncOp> getMains(mlir::ModuleOp module);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_VARIANTS_H
