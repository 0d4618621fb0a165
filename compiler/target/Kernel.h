//===- Kernel.h - What is known of a kernel before it has code --*- C++ -*-===//
//
// A kernel is a `graph.fused` op. The host side needs to know how it is
// launched before any code exists; the code itself is emitted later, the same
// for equal regions.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_TARGET_KERNEL_H
#define TCC_COMPILER_TARGET_KERNEL_H

#include "dialects/exec/ExecDialect.h"
#include "dialects/graph/GraphOps.h"

namespace tcc {

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
  /// Symbols whose values are passed as `sizes` to code that is not finished,
  /// increasing.
  llvm::SmallVector<unsigned> usedSymbols;
  /// Work as expressions of the symbols: arithmetic and memory traffic.
  mlir::AffineExpr flops, bytes;
  /// What the target decided: see kPlanAttr. Null if it has nothing to say.
  mlir::DictionaryAttr plan;
  /// Other plans, by which the kernel computes the same bits and may be faster:
  /// the likeliest first.
  llvm::SmallVector<mlir::DictionaryAttr> alternatives;
  /// What a library may do instead; null if no library does it.
  exec::LibraryWorkAttr library;
  /// The code, if it goes into the package as it is; null: the target emits it.
  exec::FinishedCodeAttr finished;
};

/// How the target computes a kernel, in the attribute of this name of the fused
/// op: a dictionary, whose keys are the target's. Target::plan makes it, and
/// keeps choices that stand there already, which others may have made; code
/// follows it and decides nothing of that again.
inline constexpr llvm::StringLiteral kPlanAttr = "plan";

/// The choice `name` in kPlanAttr of `fused`; null if there is none.
inline mlir::Attribute getChoice(graph::FusedOp fused, llvm::StringRef name) {
  auto plan = fused->getAttrOfType<mlir::DictionaryAttr>(kPlanAttr);
  return plan ? plan.get(name) : mlir::Attribute();
}

/// Bytes to which the buffers of all of a kernel's launches are aligned, in the
/// attribute of this name of the fused op, if some are aligned to less than
/// TargetCapabilities::accessBytes.
inline constexpr llvm::StringLiteral kAlignmentsAttr = "alignments";

/// Results that lie in the buffer of an input: pairs (result, input) in the
/// attribute of this name of the fused op, an array of i64 arrays.
inline constexpr llvm::StringLiteral kInPlaceAttr = "in_place";

/// The most that TargetCapabilities::accessBytes is of any target. Scalars that
/// share a line (PackScalars) are as far apart.
inline constexpr int64_t kMaxAccessBytes = 16;

/// What code of the host for a region depends on besides the region; other
/// targets depend on nothing else.
struct KernelOptions {
  /// Bytes of a vector register of the host.
  int64_t vectorBytes = 64;
  /// An instruction of the host multiplies and adds pairs of bf16.
  bool hasPairProducts = false;
  /// The host has registers for tiles of matrices of bf16, and instructions
  /// that multiply these.
  bool hasTileRegisters = false;
};

} // namespace tcc

#endif // TCC_COMPILER_TARGET_KERNEL_H
