//===- Strides.h - Tensors as strided views of others -----------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_STRIDES_H
#define TCC_DIALECTS_GRAPH_STRIDES_H

#include "dialects/graph/Shape.h"

namespace tcc::graph {

/// Strides of the axes of a row-major tensor, in elements.
Extents getRowMajorStrides(mlir::Value tensor);

/// The strides that elements with `strides` over the axes `from` have over the
/// axes `to`, in the same row-major order; nullopt where there are none.
std::optional<Extents> reshapeStrides(llvm::ArrayRef<mlir::AffineExpr> strides,
                                      llvm::ArrayRef<mlir::AffineExpr> from,
                                      llvm::ArrayRef<mlir::AffineExpr> to);

/// A tensor as a row-major one with a stride for each of its own axes, as far
/// as it is one: transposes, slices, broadcasts and some reshapes change
/// strides and where it starts alone.
struct StridedInput {
  mlir::Value input; // null if the tensor is computed
  Extents strides;
  mlir::AffineExpr offset;
};

/// An input as loops walk over it.
struct LoopStrides {
  mlir::Value input;
  Extents strides; // of each loop
  mlir::AffineExpr offset;
};

/// The elements of `from` whose leading indices `map` makes of loops; nullopt
/// if there is no input, or an index is no sum of multiples of loops.
std::optional<LoopStrides> spreadOverLoops(const StridedInput &from,
                                           mlir::AffineMap map);

/// An index as a sum of multiples of loops and a constant.
struct LoopSum {
  llvm::SmallVector<int64_t> multiples; // of each loop
  int64_t constant = 0;
};

/// nullopt if `index` of so many loops is no such sum.
std::optional<LoopSum> asLoopSum(mlir::AffineExpr index, unsigned loops);

/// True if no index that loops of `extents` reach lies outside of the axis of
/// `tensor` that it is of.
bool staysInside(mlir::Value tensor, mlir::AffineMap map,
                 llvm::ArrayRef<mlir::AffineExpr> extents);

/// True if `op`, which may be null, casts floats to floats.
bool isFloatCast(mlir::Operation *op);
/// True if it does, to wider ones.
bool isWidening(mlir::Operation *op);

/// Traces `tensor` to the arguments of its block.
StridedInput traceInput(mlir::Value tensor);
/// The same to what is an input as `isInput` says. With `throughCasts` the
/// elements of the input may be floats of another width.
StridedInput traceInput(mlir::Value tensor,
                        llvm::function_ref<bool(mlir::Value)> isInput,
                        bool throughCasts = false);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_STRIDES_H
