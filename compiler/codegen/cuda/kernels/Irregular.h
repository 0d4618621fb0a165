//===- Irregular.h - Ops with loops of no common form -----------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_IRREGULAR_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_IRREGULAR_H

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"

namespace tcc::cuda {

LaunchPlan planScatter(graph::ScatterOpInterface op,
                       llvm::ArrayRef<graph::SymbolAttr> symbols);
void emitScatter(KernelBuilder &b, DeviceFrame &frame,
                 graph::ScatterOpInterface op);

LaunchPlan planTopK(graph::TopKOp op);
void emitTopK(KernelBuilder &b, DeviceFrame &frame, graph::TopKOp op);

mlir::FailureOr<LaunchPlan>
planChooseBoxes(graph::ChooseBoxesOp op,
                llvm::ArrayRef<graph::SymbolAttr> symbols);
void emitChooseBoxes(KernelBuilder &b, DeviceFrame &frame,
                     graph::ChooseBoxesOp op);

LaunchPlan planFind(graph::FindOp op);
void emitFind(KernelBuilder &b, DeviceFrame &frame, graph::FindOp op);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_IRREGULAR_H
