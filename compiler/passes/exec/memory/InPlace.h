//===- InPlace.h - Results in the buffers of inputs -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_EXEC_MEMORY_INPLACE_H
#define TCC_COMPILER_PASSES_EXEC_MEMORY_INPLACE_H

#include "dialects/exec/ExecOps.h"
#include "dialects/graph/GraphOps.h"

namespace tcc::exec {

/// The computation of a launch, found among the kernels of its module.
graph::FusedOp getComputation(LaunchOp launch,
                              const mlir::SymbolTable &kernels);

/// True if `result` of the launch can lie where its input `input` does, both by
/// position, once nothing else reads that: they have as many bytes and no
/// views, and the launch uses each once.
bool canLieOver(LaunchOp launch, graph::FusedOp computation, unsigned result,
                unsigned input);

/// Notes that `result` lies where `input` does. Kernels are not merged yet, so
/// that the computation is one launch's alone.
void noteInPlace(graph::FusedOp computation, unsigned result, unsigned input);

/// True if the launch, which reads `input` and writes `result`, can do so in
/// one buffer; this is noted then.
bool tryInPlace(LaunchOp launch, graph::FusedOp computation, mlir::Value result,
                mlir::Value input);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_MEMORY_INPLACE_H
