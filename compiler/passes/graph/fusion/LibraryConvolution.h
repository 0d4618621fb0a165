//===- LibraryConvolution.h - Convolutions that libraries have --*- C++ -*-===//
//
// A library of convolutions (cuDNN) computes
//
//   result[n, k, p] = activation(sum_{c, t} x[n, c, p * stride + t * dilation -
//       pad_low] * filter[k, c, t] + addend[n, k, p] + bias[k])
//
// of strided images in f16 or bf16; of f32 it would round the operands. It also
// has the gradient of the filter, from x and that of the sums.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYCONVOLUTION_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYCONVOLUTION_H

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/Strides.h"

namespace tcc::fusion {

/// A tensor [N, C, spatial...] in `input`, whatever the order of axes there.
struct StridedImage {
  mlir::Value input;
  mlir::AffineExpr offset;
  graph::Extents extents, strides;
};

struct LibraryConvolution {
  StridedImage x, filter, result;
  llvm::SmallVector<int64_t> padLow, padHigh, strides, dilations;
  /// `filter` is a gradient of the sums, `result` that of the filter.
  bool isFilterGradient = false;
  std::optional<StridedImage> addend, bias; ///< the bias is repeated
  mlir::Operation *activation = nullptr;    ///< relu
  bool tf32 = false; ///< as of a LibraryProduct; else operands are narrow
};

/// `result`, which is computed from a convolution by `anchor` and from values
/// of which `isInput` is true; nullopt if that is not of the form above.
std::optional<LibraryConvolution>
describeConvolution(mlir::Operation *anchor, mlir::Value result,
                    llvm::function_ref<bool(mlir::Value)> isInput);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYCONVOLUTION_H
