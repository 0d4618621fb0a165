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
