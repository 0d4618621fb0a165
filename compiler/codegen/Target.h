//===- Target.h - What a target makes of a fused region ---------*- C++ -*-===//
//
// A kernel is a `graph.fused` op. The host side needs to know how it is
// launched before any code exists; the code itself is emitted later, the same
// for equal regions.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_TARGET_H
#define TCC_COMPILER_CODEGEN_TARGET_H

#include "dialects/exec/ExecDialect.h"
#include "dialects/graph/GraphOps.h"

namespace tcc::codegen {

/// How a kernel is launched.
struct KernelInfo {
  /// Threads of a block on a device; 0: the kernel runs on the host.
  int64_t threads = 0;
  /// Number of tasks, or of blocks on a device: an expression of the module's
  /// symbols. It depends on shapes alone, never on the number of threads.
  mlir::AffineExpr tasks;
  /// Scratch memory of each worker, at the upper bounds of the symbols.
  int64_t workerScratchBytes = 0;
  /// The last buffer is the fault buffer: i64[2], {1, value} after an index out
  /// of range.
  bool usesFault = false;
  /// Symbols whose values are passed as `sizes`, increasing.
  llvm::SmallVector<unsigned> usedSymbols;
  /// Work as expressions of the symbols: arithmetic and memory traffic.
  mlir::AffineExpr flops, bytes;
  /// The same for a library, as one of these; null if it is neither.
  exec::ProductAttr product;
  exec::ConvolutionAttr convolution;
};

/// Bytes to which the buffers of a device's launch are aligned, in the
/// attribute of this name of the fused op, if some are aligned to less than 16.
inline constexpr llvm::StringLiteral kAlignmentsAttr = "alignments";

/// Describes the host's kernel of `fused`; an error if its kind is not
/// supported. The op stands in a module with the symbols.
mlir::FailureOr<KernelInfo> analyzeKernel(graph::FusedOp fused);

/// True if result `result` may lie in the buffer of input `input`: every
/// element of any result depends, of that input, on the element at the same
/// row-major position only, and that is read before it is overwritten.
bool canShareBuffer(graph::FusedOp fused, unsigned result, unsigned input);

/// Results that lie in the buffer of an input: pairs (result, input) in the
/// attribute of this name of the fused op, an array of i64 arrays.
inline constexpr llvm::StringLiteral kInPlaceAttr = "in_place";

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_TARGET_H
