//===- PaddedWindows.h - Windows as tile registers read them ----*- C++ -*-===//
//
// Windows that slide by one step overlap. A task copies what its windows cover
// once, with the padding around it, instead of each window: where the copy's
// rows of pixels are numbered through as positions, padding included, the pixel
// that a tap reads is as many positions away for all windows. So a register
// loads 16 windows that follow each other in one piece, whatever the tap.
// Positions at which no window starts cost as much as others.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_PADDEDWINDOWS_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_PADDEDWINDOWS_H

#include "compiler/codegen/cpu/tile/Convolution.h"

namespace tcc::cpu {

/// A spatial axis, without steps.
struct PaddedAxis {
  int64_t input, output, taps, dilation, padLow;

  int64_t getReach() const { return (taps - 1) * dilation; }
  /// What windows cover, with the padding.
  int64_t getPadded() const { return output + getReach(); }
};

/// Windows over [images, axes..., channels] of bf16.
struct PaddedWindows {
  llvm::SmallVector<PaddedAxis> axes; // outermost first
  int64_t channels;

  /// Whether copying them serves tile registers better than copying windows.
  bool isWorthwhile() const;
  /// Positions of a row of pixels.
  int64_t getPitch() const { return axes.back().getPadded(); }
  /// Positions from a window's first tap to its last one.
  int64_t getReach() const;
  /// Bytes of what `windows` that follow each other cover, and what registers
  /// read behind it.
  int64_t getScratchBytes(int64_t windows) const;
};

/// The left operand of a contraction with m = images * output positions, k =
/// taps * channels in units, of an input in units.
MatrixOperand makePaddedWindows(const ConvolutionInput &input,
                                const PaddedWindows &windows);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_PADDEDWINDOWS_H
