//===- PaddedWindows.h - Windows as tile registers read them ----*- C++ -*-===//
//
// Windows that slide by one step overlap. A task copies what its windows cover
// once, with the padding around it, instead of each window: where the copy's
// rows of pixels are numbered through as positions, padding included, the pixel
// that a tap reads is as many positions away for all windows. So a register
// loads 16 windows that follow each other in one piece, whatever the tap.
// Positions at which no window starts cost as much as others. Axes before the
// last two would make tasks copy whole planes: there is a copy for each of
// their taps instead.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_PADDEDWINDOWS_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_PADDEDWINDOWS_H

#include "compiler/codegen/cpu/tile/Convolution.h"

namespace tcc::cpu {

/// A spatial axis, without steps.
struct PaddedAxis {
  int64_t input, output, taps, dilation, padLow;
};

/// Windows over [images, axes..., channels] of bf16.
struct PaddedWindows {
  llvm::SmallVector<PaddedAxis> axes; // outermost first
  int64_t channels;
  int64_t windows = 0; // of a task, at most; they follow each other

  /// Whether copying them serves tile registers better than copying windows.
  bool isWorthwhile() const;
  /// Whether a copy has the axis with its padding.
  bool isInner(size_t axis) const { return axis + 2 >= axes.size(); }
  /// Positions along an axis: of windows, and of padding if it is inner.
  int64_t getPositions(size_t axis) const;
  /// Positions of a row of pixels.
  int64_t getPitch() const { return getPositions(axes.size() - 1); }
  /// Positions from a window's first tap to its last one, in a copy.
  int64_t getReach() const;
  /// Taps of the outer axes.
  int64_t getCopies() const;
  /// Positions of a copy, and what registers read behind it.
  int64_t getCopyPositions() const;
  /// Bytes of all copies.
  int64_t getScratchBytes() const;
};

/// The left operand of a contraction with m = images * output positions, k =
/// taps * channels in units, of an input in units.
MatrixOperand makePaddedWindows(const ConvolutionInput &input,
                                const PaddedWindows &windows);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_PADDEDWINDOWS_H
