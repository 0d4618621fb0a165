//===- LibraryProduct.h - Kernels that libraries have, too ------*- C++ -*-===//
//
// A library of matrix products (cuBLASLt) computes
//
//   result[b, i, j] = activation(scale * sum_k lhs[b, i, k] * rhs[b, k, j]
//                                + addend[b, i, j] + bias[j])
//
// of strided matrices, and stores sums of an operand along k, or what gelu is
// of as a second result, or multiplies with gelu's derivative at such a matrix.
// Which kernels are of this form is asked while kernels are chosen, and again
// when one is described for the runtime.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYPRODUCT_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYPRODUCT_H

#include "dialects/graph/Strides.h"
#include "mlir/IR/Operation.h"
#include <optional>

namespace tcc::fusion {

/// Element (b, i, j) of the matrices that lie in `input`, a row-major tensor.
struct StridedMatrix {
  mlir::Value input;
  mlir::AffineExpr offset, batch, row, column;
};

struct LibraryProduct {
  mlir::AffineExpr batch, m, n, k;
  StridedMatrix lhs, rhs, result; ///< the result's `input` is the value
  std::optional<StridedMatrix> addend, bias;
  double scale = 1;
  mlir::Operation *activation = nullptr; ///< as of an Epilogue
  bool tf32 = false; ///< operands, of f32, may be rounded so
  /// What gelu_tanh is of, stored, or what its gradient reads of that.
  std::optional<StridedMatrix> sum;
  /// Sums along the depth, a vector: of rhs, or of lhs.
  std::optional<StridedMatrix> depthSums;
  bool sumsLhs = false;
};

/// `results`, which are computed from a product by `anchor` and from values of
/// which `isInput` is true; nullopt if that is not of the form above.
std::optional<LibraryProduct>
describeProduct(mlir::Operation *anchor, llvm::ArrayRef<mlir::Value> results,
                llvm::function_ref<bool(mlir::Value)> isInput);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_LIBRARYPRODUCT_H
