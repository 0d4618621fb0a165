//===- PlaneConvolution.h - Convolution with few filters --------*- C++ -*-===//
//
// out[pixel, filter] = sum over k of patches[pixel, k] * weights[k, filter], as
// in Convolution.h, where filters are too few to fill vectors: their lanes are
// neighbouring pixels of a row instead. A task copies the rows of the input
// that its rows of results read into the worker's scratch, channel by channel,
// with zeros around them, so that what a tap reads for a vector of pixels is
// one load. Where columns stride, those that lie so far apart are adjacent
// there. Of bf16 a plane holds units of channels (PackedUnit.h); where those
// would begin within a tap, a plane holds one channel, and what two taps read
// is made a unit.
//
// Each sum is one chain of multiply-adds in the order of k, as in
// Contraction.h: it has the same bits.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_PLANECONVOLUTION_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_PLANECONVOLUTION_H

#include "compiler/codegen/cpu/tile/Contraction.h"

namespace tcc::cpu {

/// The rows or the columns of images, as windows slide over them: position o
/// and tap t read position o * stride - padLow + t * dilation, which is zero
/// outside the input.
struct PlaneAxis {
  int64_t input = 1, output = 1, taps = 1;
  int64_t stride = 1, dilation = 1, padLow = 0;
};

/// A convolution of images [images, rows, columns, channels] of f32, or of
/// elements that are multiplied in units.
struct PlaneWindow {
  PlaneAxis rows, columns;
  int64_t channels = 1, filters = 1;
  Packing packing = {};

  /// Whether planes hold units of a tap.
  bool hasUnits() const { return channels % packing.group == 0; }
  int64_t getPlanes() const {
    return hasUnits() ? channels / packing.group : channels;
  }
  /// What a window reads of planes.
  int64_t getDepth() const { return rows.taps * columns.taps * getPlanes(); }
  /// Rows of the input that so many rows of results read.
  int64_t getInputRows(int64_t rowsOfResults) const;
  /// Elements of a row in the scratch, of the columns of one phase.
  int64_t getWidth() const;
  /// Bytes of the planes that a task copies.
  int64_t getPlaneBytes(int64_t rowsOfResults) const;
  /// Bytes of scratch.
  int64_t getScratchBytes(int64_t rowsOfResults) const;
};

/// Rows of results of a task; 0 where a product with vectors of filters is
/// likely to be as fast.
int64_t choosePlaneRows(const PlaneWindow &window);

/// Whether tasks can have so many rows of results.
bool isPlaneRows(const PlaneWindow &window, int64_t rows);

struct PlaneConvolution {
  PlaneWindow window;
  int64_t taskRows; ///< rows of results of a task
  Memory input;
  Value images;
  PanelView weights; // one panel
  EpilogueFunction epilogue;
  VectorUnit unit;
};

/// Emits tasks [firstTask, lastTask), of which an image has
/// ceil(rows.output / taskRows); `scratch` has getScratchBytes.
void emitPlaneConvolution(KernelBuilder &b, const PlaneConvolution &convolution,
                          Value firstTask, Value lastTask, Value scratch);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_PLANECONVOLUTION_H
