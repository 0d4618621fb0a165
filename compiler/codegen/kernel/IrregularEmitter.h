//===- IrregularEmitter.h - Ops with loops of no common form ----*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_KERNEL_IRREGULAREMITTER_H
#define TCC_COMPILER_CODEGEN_KERNEL_IRREGULAREMITTER_H

#include "compiler/codegen/kernel/KernelEmitter.h"

namespace tcc::codegen {

/// Loops over all of `extents`; `at` holds the indices of the outer ones.
using ElementBody = llvm::function_ref<void(mlir::OpBuilder &, ValueRange)>;
void forElements(mlir::OpBuilder &b, KernelFrame &frame,
                 llvm::ArrayRef<mlir::AffineExpr> extents,
                 llvm::SmallVector<Value> at, ElementBody body);

/// What an update makes of the element `old`, before rounding.
Value emitUpdate(mlir::OpBuilder &b, mlir::Location loc,
                 graph::ScatterOpInterface op, Value old, Value update);

mlir::FailureOr<TaskPlan>
planScatter(graph::FusedOp region, graph::ScatterOpInterface op,
            llvm::ArrayRef<graph::SymbolAttr> symbols);
void emitScatter(mlir::OpBuilder &b, KernelFrame &frame,
                 graph::ScatterOpInterface op);

/// Whether x comes before y: NaN counts as the largest, and equal elements do
/// not.
Value emitIsBetter(mlir::OpBuilder &b, mlir::Location loc, graph::TopKOp op,
                   Value x, Value y);

mlir::FailureOr<TaskPlan> planTopK(graph::TopKOp op,
                                   llvm::ArrayRef<graph::SymbolAttr> symbols);
void emitTopK(mlir::OpBuilder &b, KernelFrame &frame, graph::TopKOp op);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_KERNEL_IRREGULAREMITTER_H
