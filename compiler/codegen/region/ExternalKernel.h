//===- ExternalKernel.h - Kernels that come as code -------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_REGION_EXTERNALKERNEL_H
#define TCC_COMPILER_CODEGEN_REGION_EXTERNALKERNEL_H

#include "compiler/codegen/region/RegionFrame.h"
#include "dialects/graph/GraphOps.h"
#include "llvm/Support/MemoryBufferRef.h"

namespace tcc::codegen {

/// The kernel for `target` that a region's op has as code; null if it has none.
graph::CustomKernelAttr findExternal(graph::FusedOp region,
                                     llvm::StringRef target);

/// The kernel for `target` of `op`, the anchor of a region of which it takes
/// all inputs and yields all results, in order; an error if there is none.
mlir::FailureOr<graph::CustomKernelAttr>
getExternal(graph::ExternalKernelOpInterface op, llvm::StringRef target);

/// What `region` is launched as, if its code for `target` goes into the package
/// as it is; null otherwise.
exec::FinishedCodeAttr findFinished(graph::FusedOp region,
                                    llvm::StringRef target);

/// What the function of `kernel` is called in a program, where no other is
/// called so.
std::string getExternalName(graph::CustomKernelAttr kernel);

llvm::MemoryBufferRef getBytes(graph::CustomCodeAttr code);

/// What the function of a kernel reads and writes: the buffers of the inputs
/// and results of its op, and sizes as i64.
struct ExternalArguments {
  llvm::SmallVector<Value> buffers, sizes;
};
ExternalArguments emitArguments(mlir::OpBuilder &b, RegionFrame &frame,
                                graph::ExternalKernelOpInterface op,
                                graph::CustomKernelAttr kernel);

/// Calls the function of `kernel` by its name; declares it beside the function
/// that `b` stands in.
void emitExternalCall(mlir::OpBuilder &b, mlir::Location loc,
                      graph::CustomKernelAttr kernel,
                      mlir::ValueRange operands);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_EXTERNALKERNEL_H
