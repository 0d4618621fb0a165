//===- MergedAxis.h - An axis that a reshape joins --------------*- C++ -*-===//
//
// The depth of a convolution's packed filter is rows, columns and channels of
// the window as one axis. In memory rows and columns may lie nearer to each
// other than channels do: then places that are whole counts of channels apart
// share lines.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_MERGEDAXIS_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_MERGEDAXIS_H

#include "compiler/codegen/region/KernelBuilder.h"
#include "dialects/graph/GraphOps.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using mlir::Value;
using mlir::ValueRange;

/// An axis of a reshape's result, with the units that follow it, is joined from
/// axes of its operand, of which neighbours along the last lie farther apart in
/// an input than those along another. All extents are constant.
struct MergedAxis {
  graph::ReshapeOp reshape;
  int64_t axis = 0;   ///< of the result
  int64_t unit = 1;   ///< extent of the result's last axis, if that is another
  int64_t period = 0; ///< places of `axis` along the operand's last axis
  int64_t periods = 0;
  /// Strides of the input, in elements, along each joined axis of the operand.
  llvm::SmallVector<int64_t> strides;
  /// From one period to the next, if that is always the same; 0 if not.
  int64_t periodStride = 0;

  /// Whether elements of all periods fill the lines of one place.
  bool isDense() const { return std::abs(strides.back()) == periods; }

  /// The operand's indices of the element `u` of the unit at place `place` of
  /// period `number`; `at` has the other indices of the result.
  llvm::SmallVector<mlir::Value>
  getSource(KernelBuilder &b, mlir::ValueRange at, mlir::Value number,
            mlir::Value place, mlir::Value u) const;
};

/// The merged axis of `tensor`'s reshape; `axis` is its last but for the unit.
std::optional<MergedAxis> findMergedAxis(mlir::Value tensor, int64_t axis,
                                         int64_t unit);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_MERGEDAXIS_H
