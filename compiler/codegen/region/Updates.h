//===- Updates.h - Scalars of irregular ops ---------------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_UPDATES_H
#define TCC_COMPILER_CODEGEN_REGION_UPDATES_H

#include "compiler/codegen/region/Buffer.h"
#include "dialects/graph/GraphOps.h"

namespace tcc::codegen {

/// What an update makes of the element `old`, before rounding.
Value emitUpdate(mlir::OpBuilder &b, mlir::Location loc,
                 graph::ScatterOpInterface op, Value old, Value update);

/// Whether x comes before y: NaN counts as the largest, and equal elements do
/// not.
Value emitIsBetter(mlir::OpBuilder &b, mlir::Location loc, graph::TopKOp op,
                   Value x, Value y);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_UPDATES_H
