//===- Convolution.h - Convolution as matrix multiplication -----*- C++ -*-===//
//
// out[pixel, group, filter] = sum over k of patches[pixel, k] *
// weights[k, filter], where a pixel is an output position of an image and k
// runs over (tap, input channel). Channels are adjacent in memory, so a patch
// is made of runs. Those are read where they lie; of few channels they are
// copied, block by block, into the worker's scratch. Weights come in panels.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_CONVOLUTION_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_CONVOLUTION_H

#include "compiler/codegen/cpu/tile/Contraction.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;
using mlir::ValueRange;

/// One spatial dimension: output position o and tap t read input position
/// o * stride - padBegin + t * dilation, which is zero outside the input; where
/// that counts inputDilation - 1 zeros between elements of the input as well,
/// stride and dilation are 1.
struct WindowDimension {
  Value input, output, taps;
  int64_t stride = 1, dilation = 1;
  Value padBegin;
  int64_t inputDilation = 1;
};

/// The input, [images, spatial..., groups, channels] in row-major order.
struct ConvolutionInput {
  Memory base;
  Value images;
  int64_t groups, channels;                      // channels of one group
  llvm::SmallVector<WindowDimension> dimensions; // outermost first
  Packing packing = {}; // of copies into units, if elements are none yet
};

/// The left operand of a contraction with batch = groups, m = images * output
/// positions, k = taps * channels, in units of type `packed` if it `isCopied`.
/// Zeros fill up the last one then. Else it is read in runs.
MatrixOperand makePatches(KernelBuilder &b, const ConvolutionInput &input,
                          mlir::Type packed, VectorUnit unit, bool isCopied);

/// The right operand of a contraction with n = taps * channels of one group and
/// k = images * output positions, in units of type `packed`.
MatrixOperand makePatchColumns(const ConvolutionInput &input, mlir::Type packed,
                               VectorUnit unit);

/// The strides of the images and of the dimensions, in elements.
llvm::SmallVector<Value> getStrides(KernelBuilder &b,
                                    const ConvolutionInput &input);

/// The taps of the innermost dimension whose elements are adjacent.
int64_t getRunTaps(const ConvolutionInput &input);

/// Whether patches of so many channels of a group are copied.
bool packsPatches(int64_t channels, Packing packing, bool hasTileRegisters);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_CONVOLUTION_H
