//===- Window.h - Generates sliding-window kernels --------------*- C++ -*-===//
//
// out[image, channel, o...] = epilogue(combine over taps t of
// in[image, channel, o * stride - padBegin + t * dilation])
//
// Pooling and convolution of narrow groups: little work for each element read,
// so the input is used where it lies. Taps outside the input are left out; the
// others are combined in row-major order. Vectors run along the innermost
// dimension, or along the channels where those come last.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_WINDOW_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_WINDOW_H

#include "compiler/codegen/cpu/tile/Convolution.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

/// The input is read from memory where `base` is set, in row-major order; else
/// it is computed by `element`.
struct WindowInput {
  Memory base;
  std::function<Value(KernelBuilder &, Value image, Value channel,
                      ValueRange position)>
      element;
  mlir::Type type;
};

/// Joins a vector of inputs to one of partial results, for one tap.
using WindowCombine =
    std::function<Value(KernelBuilder &, Value partial, Value input,
                        Value channel, ValueRange tap)>;
/// The same for channels from `firstChannel` on, one a lane, each with input
/// channel, or unit of them, number `groupChannel` of its group; lanes outside
/// `mask`, if it is not null, do not exist.
using ChannelCombine = std::function<Value(
    KernelBuilder &, Value partial, Value input, Value firstChannel,
    ValueRange tap, int64_t groupChannel, Value mask)>;
using WindowEpilogue =
    std::function<void(KernelBuilder &, Value result, Value image,
                       Value channel, ValueRange position)>;

struct Window {
  Value images, channels;
  llvm::SmallVector<WindowDimension> dimensions; // outermost first
  WindowInput input = {};
  mlir::TypedAttr initial = {}; // of the partial results
  WindowCombine combine = {};
  ChannelCombine combineChannels = {};
  WindowEpilogue epilogue = {};
  VectorUnit unit = {};
  int64_t unitsPerTask = 1; // planes, or rows of pixels
  // A group of so many channels reads so many of the input.
  int64_t groupSize = 1, groupInputs = 1;
  Packing packing = {}; // channels of the input are joined in units
};

/// Units, of `work` combinations each, that make a task worth its start.
int64_t chooseWindowGrain(int64_t work);

/// Emits tasks [firstTask, lastTask) of planes [image, channel]; a group reads
/// one channel of the input.
void emitWindow(KernelBuilder &b, const Window &window, Value firstTask,
                Value lastTask);

/// Emits tasks [firstTask, lastTask) of rows [image, spatial...] of pixels; the
/// input is [images, spatial..., channels]. Vectors hold whole groups, which
/// read no more channels than they have.
void emitPixelWindow(KernelBuilder &b, const Window &window, Value firstTask,
                     Value lastTask);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_WINDOW_H
