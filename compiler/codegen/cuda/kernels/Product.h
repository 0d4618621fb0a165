//===- Product.h - Batched matrix products of any operands ------*- C++ -*-===//
//
// result[batch, i, j] = epilogue(sum over k of lhs[batch, i, k] *
//                                             rhs[batch, k, j])
//
// A block computes a tile of the results. It goes through k a few steps at a
// time: its threads pull elements of both operands into shared memory, those of
// the next steps while they multiply these. A thread has some rows and columns
// of sums in registers.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_PRODUCT_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_PRODUCT_H

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"

namespace tcc::cuda {

/// What a block computes at once: the choice kKey of a plan, these six
/// numbers in order. Where a tile has fewer sums than make a block worth it,
/// `splits` threads share those of a sum: each takes its own steps of k, and
/// their parts are added in order.
struct ProductTile {
  int64_t rows, columns, depth;
  int64_t threadRows, threadColumns;
  int64_t splits = 1;

  int64_t getThreads() const {
    return rows / threadRows * (columns / threadColumns) * splits;
  }
  static constexpr llvm::StringLiteral kKey = "tile";

  bool operator==(const ProductTile &) const = default;

  mlir::DictionaryAttr write(mlir::MLIRContext *context) const;
  /// The tile in the plan of `region`; nothing if there is none.
  static std::optional<ProductTile> read(graph::FusedOp region);
};

struct ProductShape {
  mlir::AffineExpr batch, m, n, k;
  mlir::Type sum;

  /// The tiles that there are for such sums.
  llvm::SmallVector<ProductTile> listTiles() const;
  ProductTile chooseTile(llvm::ArrayRef<graph::SymbolAttr> symbols) const;
  LaunchPlan getLaunch(const ProductTile &tile) const;
};

/// Where elements come from; a lane is a row of lhs or a column of rhs.
struct ProductOperand {
  /// The element at `first` + `step` of k, as it is summed. `first` is the same
  /// for all threads, and a multiple of the tile's depth where k is one.
  std::function<Value(KernelBuilder &, Value batch, Value lane, Value first,
                      Value step)>
      element;
  /// Neighbours along k are adjacent in memory, rather than lanes.
  bool kIsAdjacent = false;
};

/// Where one operand is also summed, the other one has a last lane of ones:
/// behind it are the sums of lanes, the second result of the kernel's op.
struct Product {
  ProductShape shape; ///< without the ones
  ProductOperand lhs, rhs;
  /// The indices of sum (batch, i, j) in the result of the kernel's op.
  std::function<llvm::SmallVector<Value>(KernelBuilder &, Value batch, Value i,
                                         Value j)>
      indices;
  graph::ProductSums sums = graph::ProductSums::none;
};

/// The shape with the lane of ones.
ProductShape addOnes(ProductShape shape, graph::ProductSums sums);

/// Emits the tile of the block; sums pass through the region to its results.
void emitProduct(KernelBuilder &b, DeviceFrame &frame, const Product &product);

/// Passes neighbouring sums, from column `first` on, through the region to its
/// results, but for columns outside of `extent`; `first` is a multiple of their
/// number. `at` gives the indices of a column in the result of the kernel's op;
/// of several results `result` is the one. All but the first are stored as they
/// are.
using ColumnIndices =
    llvm::function_ref<llvm::SmallVector<Value>(Value column)>;
void storeSums(KernelBuilder &b, DeviceFrame &frame, ValueRange sums,
               Value first, mlir::AffineExpr extent, ColumnIndices at,
               unsigned result = 0);

/// True if neighbours along `axis` of `tensor` are adjacent in memory, as far
/// as one can tell.
bool isAdjacent(Value tensor, int64_t axis);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_PRODUCT_H
