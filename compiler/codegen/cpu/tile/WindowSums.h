//===- WindowSums.h - Gradients of sliding filters --------------*- C++ -*-===//
//
// out[filter, tap, channel] = sum over images and positions o of
// x[image, o * stride - padBegin + tap * dilation, channel of filter's group] *
// gradient[image, o, filter]
//
// x and gradient have the channels last. Vectors run along the filters; a sum
// for each tap of the innermost dimension stays in registers while a task walks
// over all positions, in row-major order: no window is stored. Taps outside of
// x are left out.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_WINDOWSUMS_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_WINDOWSUMS_H

#include "compiler/codegen/cpu/tile/Window.h"

namespace tcc::cpu {

struct WindowSums {
  Value images, filters;
  llvm::SmallVector<WindowDimension>
      dimensions; // of constants, outermost first
  Memory x, gradient;
  mlir::Type sumType;
  /// sum + x * gradient, of vectors as they are in memory.
  std::function<Value(KernelBuilder &, Value sum, Value x, Value gradient)>
      join = {};
  /// Takes one element of the result.
  std::function<void(KernelBuilder &, Value sum, Value filter, ValueRange tap,
                     Value groupChannel)>
      store = {};
  VectorUnit unit = {};
  // A group of so many filters has so many channels of x.
  int64_t groupSize = 1, groupInputs = 1;
};

/// A task sums for so many filters, one place of the outer dimensions of the
/// window and so many taps of the innermost one.
inline constexpr int64_t kFiltersPerTask = 64, kTapsPerTask = 8;

void emitWindowSums(KernelBuilder &b, const WindowSums &sums, Value firstTask,
                    Value lastTask);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_WINDOWSUMS_H
