//===- IrregularEmitter.h - Ops with loops of no common form ----*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_IRREGULAREMITTER_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_IRREGULAREMITTER_H

#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "compiler/codegen/region/Updates.h"

namespace tcc::cpu {

/// Loops over all of `extents`; `at` holds the indices of the outer ones.
using ElementBody = llvm::function_ref<void(mlir::OpBuilder &, ValueRange)>;
void forElements(mlir::OpBuilder &b, KernelFrame &frame,
                 llvm::ArrayRef<mlir::AffineExpr> extents,
                 llvm::SmallVector<Value> at, ElementBody body);

mlir::FailureOr<TaskPlan>
planScatter(graph::FusedOp region, graph::ScatterOpInterface op,
            llvm::ArrayRef<graph::SymbolAttr> symbols);
void emitScatter(mlir::OpBuilder &b, KernelFrame &frame,
                 graph::ScatterOpInterface op);

mlir::FailureOr<TaskPlan> planTopK(graph::TopKOp op,
                                   llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::FailureOr<TaskPlan>
planExternal(graph::ExternalKernelOpInterface op,
             llvm::ArrayRef<graph::SymbolAttr> symbols);
/// A call of the kernel's function under its name in images.
void emitExternal(mlir::OpBuilder &b, KernelFrame &frame,
                  graph::ExternalKernelOpInterface op);

void emitTopK(mlir::OpBuilder &b, KernelFrame &frame, graph::TopKOp op);

TaskPlan planChooseBoxes(graph::ChooseBoxesOp op,
                         llvm::ArrayRef<graph::SymbolAttr> symbols);
void emitChooseBoxes(mlir::OpBuilder &b, KernelFrame &frame,
                     graph::ChooseBoxesOp op);

TaskPlan planFind(graph::FindOp op);
void emitFind(mlir::OpBuilder &b, KernelFrame &frame, graph::FindOp op);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_IRREGULAREMITTER_H
