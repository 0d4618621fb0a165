//===- Gathers.h - Gathers read in place, tuples of indices -----*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_GATHERS_H
#define TCC_DIALECTS_GRAPH_GATHERS_H

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/interfaces/Product.h"

namespace tcc::graph {

/// The loop of a product's batch that chooses slices of a tensor, as a
/// mixture's tokens choose their experts: `tensor`, the operand of `side`, is
/// gathered at a list of indices along an axis that this loop alone walks over,
/// and no other. Nullopt if it is not.
std::optional<unsigned> findGatheredLoop(const ProductView &view,
                                         const ProductSide &side,
                                         mlir::Value tensor);

/// The slices of x that `op` reads, by element of its indices; nullopt if these
/// are no constants, or if one is out of range.
std::optional<llvm::SmallVector<int64_t>> findSlices(GatherOp op);

/// The index into x of the slice that element `at` of the indices chooses. An
/// index out of range sets the fault flag, and is 0 then.
mlir::Value emitSliceIndex(mlir::OpBuilder &builder, mlir::Location loc,
                           GatherOp op, mlir::ValueRange at,
                           ElementSource &source);

/// Tuples of one index each.
mlir::Value makeTuples(mlir::OpBuilder &builder, mlir::Location loc,
                       mlir::Value indices);

/// Index tuples with the indices of their own first axes before them.
mlir::Value addBatchIndices(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value tuples, int64_t batchAxes);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_GATHERS_H
