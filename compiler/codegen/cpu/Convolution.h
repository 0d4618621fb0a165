//===- Convolution.h - Convolution as matrix multiplication -----*- C++ -*-===//
//
// out[image, group, channel, pixel] = sum over k of weights[channel, k] *
// patches[k, pixel], where k runs over (input channel, tap). The weights come
// in panels; the patches are gathered from the input, block by block, into
// the worker's scratch.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_CONVOLUTION_H
#define TCC_COMPILER_CODEGEN_CPU_CONVOLUTION_H

#include "compiler/codegen/cpu/Contraction.h"

namespace tcc::cpu {

/// One spatial dimension: output position o and tap t read input position
/// o * stride - padBegin + t * dilation, which is zero outside the input.
struct WindowDimension {
  Value input, output, taps;
  int64_t stride = 1, dilation = 1;
  Value padBegin;
};

/// The input, [images, groups, channels, spatial...] in row-major order.
struct ConvolutionInput {
  Memory base;
  Value offset;
  Value channels;                                // of one group
  llvm::SmallVector<WindowDimension> dimensions; // outermost first
};

/// The right operand of a contraction with batch = images * groups,
/// n = output positions, k = channels * taps.
MatrixOperand gatheredPatches(const ConvolutionInput &input, VectorUnit unit);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_CONVOLUTION_H
