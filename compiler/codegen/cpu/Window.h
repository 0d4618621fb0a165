//===- Window.h - Generates sliding-window kernels --------------*- C++ -*-===//
//
// out[image, channel, o...] = epilogue(combine over taps t of
// in[image, channel, o * stride - padBegin + t * dilation])
//
// Depthwise convolution and pooling: little work for each element read, so
// the input is used where it lies. Taps outside the input are left out; the
// others are combined in row-major order.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_WINDOW_H
#define TCC_COMPILER_CODEGEN_CPU_WINDOW_H

#include "compiler/codegen/cpu/Convolution.h"

namespace tcc::cpu {

/// The input is read from memory where `base` is set, from
/// `offset` in row-major order; else it is computed by `element`.
struct WindowInput {
  Memory base;
  Value offset;
  std::function<Value(KernelBuilder &, Value image, Value channel,
                      ValueRange position)>
      element;
  mlir::Type type;
};

/// Joins a vector of inputs to one of partial results, for one tap.
using WindowCombine =
    std::function<Value(KernelBuilder &, Value partial, Value input,
                        Value channel, ValueRange tap)>;
using WindowEpilogue =
    std::function<void(KernelBuilder &, Value result, Value image,
                       Value channel, ValueRange position)>;

struct Window {
  Value images, channels;
  llvm::SmallVector<WindowDimension> dimensions; // outermost first
  WindowInput input = {};
  mlir::TypedAttr initial = {}; // of the partial results
  WindowCombine combine = {};
  WindowEpilogue epilogue = {};
  VectorUnit unit = {};
  int64_t planesPerTask = 1;
  int64_t multiplier = 1; // channels for each channel of the input
};

/// Planes [image, channel], of `work` combinations each, that make a task worth
/// its start.
int64_t chooseWindowGrain(int64_t work);

/// Emits tasks [firstTask, lastTask) of planesPerTask planes each.
void emitWindow(KernelBuilder &b, const Window &window, Value firstTask,
                Value lastTask);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_WINDOW_H
