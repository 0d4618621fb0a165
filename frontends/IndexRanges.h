//===- IndexRanges.h - What values index inputs may hold --------*- C++ -*-===//
#ifndef TCC_FRONTENDS_INDEXRANGES_H
#define TCC_FRONTENDS_INDEXRANGES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace tcc {

/// Gives each integer argument that is used as an index the attribute
/// `graph.index_range`: [0, the smallest extent it indexes - 1]. Tools draw
/// random inputs from it.
void setIndexRanges(mlir::func::FuncOp function);

} // namespace tcc

#endif // TCC_FRONTENDS_INDEXRANGES_H
