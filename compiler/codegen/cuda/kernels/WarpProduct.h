//===- WarpProduct.h - Products on tensor cores -----------------*- C++ -*-===//
//
// The threads of a warp hold parts of small matrices together: with g = lane /
// 4 and t = lane % 4, a thread has of
//
//   rows    [16][16]  words (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8)
//   columns [8][16]   words (g, 2t), (g, 2t + 8)
//   sums    [16][8]   f32 at (g, 2t), (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1)
//
// where a word is two neighbours of f16 or bf16. Sums of two products side by
// side, rounded, are the rows of a third one.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_WARPPRODUCT_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_WARPPRODUCT_H

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"

#include <array>

namespace tcc::cuda {

/// Extents of the matrices: rows and steps of `rows`, lanes of `columns`.
inline constexpr int64_t kFragmentRows = 16, kFragmentSteps = 16,
                         kFragmentColumns = 8;

using RowFragment = std::array<Value, 4>;
using ColumnFragment = std::array<Value, 2>;
using SumFragment = std::array<Value, 4>;

/// sums + rows columns^T, of `narrow` elements. All threads of the warp must
/// come to it.
SumFragment emitWarpProduct(KernelBuilder &b, mlir::Type narrow,
                            const RowFragment &rows,
                            const ColumnFragment &columns,
                            const SumFragment &sums);

/// The word of two f32 that `narrow` has exactly.
Value packExact(KernelBuilder &b, mlir::Type narrow, Value low, Value high);
/// The word of two f32, rounded.
Value packRounded(KernelBuilder &b, mlir::Type narrow, Value low, Value high);
/// The word of two integers of 16 bits.
Value packBits(KernelBuilder &b, Value low, Value high);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_WARPPRODUCT_H
