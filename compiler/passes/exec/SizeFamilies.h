//===- SizeFamilies.h - Kernels that differ in sizes alone ------*- C++ -*-===//
//
// What a net repeats with other numbers of channels are kernels of one text but
// for their sizes. Where a size differs from kernel to kernel it becomes a
// constant times a symbol, one for all sizes that grow by the same ratio. What
// all kernels have in common stays constant: each kernel is the text with the
// symbols at its values.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_EXEC_SIZEFAMILIES_H
#define TCC_COMPILER_PASSES_EXEC_SIZEFAMILIES_H

#include "dialects/exec/ExecOps.h"

namespace tcc::exec {

using Sizes = llvm::SmallVector<int64_t, 6>;

/// Kernels that are equal but for some sizes, which are of one order of
/// magnitude: what is chosen for the largest suits all.
struct SizeFamily {
  llvm::SmallVector<KernelOp> kernels;
  /// The extents of each kernel's tensors and the sizes in its attributes, in
  /// one order.
  llvm::SmallVector<Sizes> sizes;
};

/// The families of kernels, also of one. `getFixedExtent` says of a kernel up
/// to which value its sizes are the same in all of its family; nullopt: the
/// kernel is of no family.
llvm::SmallVector<SizeFamily> findSizeFamilies(
    mlir::ModuleOp module,
    llvm::function_ref<std::optional<int64_t>(KernelOp)> getFixedExtent);

/// Gives all kernels of a family equal bodies with symbols of their own, unless
/// they are equal already or `isPossible` says no of the first one. The values
/// of each symbol in each kernel; none if nothing was done.
llvm::SmallVector<Sizes>
shareBody(const SizeFamily &family,
          llvm::function_ref<bool(KernelOp)> isPossible);

} // namespace tcc::exec

#endif // TCC_COMPILER_PASSES_EXEC_SIZEFAMILIES_H
