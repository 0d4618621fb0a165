//===- KernelEmitter.h - A fused region becomes a function ------*- C++ -*-===//
//
// The function has the ABI of format::KernelFunction. Its body is made of scf,
// arith, math, vector, memref and llvm ops; what they become is the business of
// ObjectEmitter.h.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_KERNELEMITTER_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_KERNELEMITTER_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "compiler/codegen/region/RegionFrame.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace tcc::cpu {

using codegen::Buffer;
using codegen::KernelBuilder;
using codegen::Memory;
using codegen::RegionFrame;
using mlir::Value;
using mlir::ValueRange;

/// The function of a kernel while its body is emitted.
struct KernelFrame : RegionFrame {
  KernelOptions options;
  Value firstTask, lastTask; // index
  Value scratch;             // !llvm.ptr, the worker's
};

/// Tasks and worker scratch of a kernel: functions of shapes alone, and of
/// choices in kPlanAttr.
struct TaskPlan {
  mlir::AffineExpr tasks;
  int64_t scratchBytes = 0;
  /// As KernelInfo has them.
  mlir::DictionaryAttr plan = {};
  llvm::SmallVector<mlir::DictionaryAttr> alternatives = {};
};

/// A loop structure. `plan` looks at the simplified region; `emit` fills the
/// function with a loop over the tasks.
struct KernelKindEmitter {
  mlir::FailureOr<TaskPlan> (*plan)(graph::FusedOp region,
                                    llvm::ArrayRef<graph::SymbolAttr> symbols);
  mlir::LogicalResult (*emit)(mlir::OpBuilder &b, KernelFrame &frame);
};

/// Describes the host's kernel of `fused`; an error if its kind is not
/// supported. The op stands in a module with the symbols.
mlir::FailureOr<KernelInfo> analyzeKernel(graph::FusedOp fused);

/// The emitter of `kind`; null members if it is not supported.
KernelKindEmitter getKindEmitter(graph::KernelKind kind);

mlir::FailureOr<TaskPlan>
planPointwiseKernel(graph::FusedOp region,
                    llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitPointwiseKernel(mlir::OpBuilder &b, KernelFrame &frame);

mlir::FailureOr<TaskPlan>
planRowKernel(graph::FusedOp region, llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitRowKernel(mlir::OpBuilder &b, KernelFrame &frame);

mlir::FailureOr<TaskPlan>
planContractionKernel(graph::FusedOp region,
                      llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitContractionKernel(mlir::OpBuilder &b,
                                          KernelFrame &frame);

mlir::FailureOr<TaskPlan>
planWindowKernel(graph::FusedOp region,
                 llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitWindowKernel(mlir::OpBuilder &b, KernelFrame &frame);

mlir::FailureOr<TaskPlan>
planWindowSumsKernel(graph::FusedOp region,
                     llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitWindowSumsKernel(mlir::OpBuilder &b,
                                         KernelFrame &frame);

mlir::FailureOr<TaskPlan>
planAttentionKernel(graph::FusedOp region,
                    llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitAttentionKernel(mlir::OpBuilder &b, KernelFrame &frame);

mlir::FailureOr<TaskPlan>
planScanKernel(graph::FusedOp region,
               llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitScanKernel(mlir::OpBuilder &b, KernelFrame &frame);

mlir::FailureOr<TaskPlan>
planIrregularKernel(graph::FusedOp region,
                    llvm::ArrayRef<graph::SymbolAttr> symbols);
mlir::LogicalResult emitIrregularKernel(mlir::OpBuilder &b, KernelFrame &frame);

/// A module with one function `name` for the region of `fused`; an error if it
/// cannot be emitted.
mlir::FailureOr<mlir::OwningOpRef<mlir::ModuleOp>>
emitKernel(graph::FusedOp fused, llvm::StringRef name,
           const KernelOptions &options);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_KERNELEMITTER_H
