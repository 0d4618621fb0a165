//===- ElementSource.h - Where elements of tensors come from ----*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_INTERFACES_ELEMENTSOURCE_H
#define TCC_DIALECTS_GRAPH_INTERFACES_ELEMENTSOURCE_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace tcc::graph {

/// Gives elements of tensor values while a kernel is emitted.
class ElementSource {
public:
  virtual ~ElementSource() = default;

  /// The element of `tensor` at `indices` (index values, one per dimension):
  /// loaded from a buffer, or computed in place by the op that defines it.
  /// Booleans are i1, integers signless, f16 and bf16 arrive as f32.
  virtual mlir::Value element(mlir::OpBuilder &builder, mlir::Location loc,
                              mlir::Value tensor, mlir::ValueRange indices) = 0;

  /// The value of a size expression (constants and module symbols) as index.
  virtual mlir::Value size(mlir::OpBuilder &builder, mlir::Location loc,
                           mlir::AffineExpr expression) = 0;

  /// `index` (a signless integer read from data) as an index in [0, extent).
  /// Negative values count from the end if `wrapNegative`. A value out of range
  /// sets the fault flag and is replaced by 0.
  virtual mlir::Value checkedIndex(mlir::OpBuilder &builder, mlir::Location loc,
                                   mlir::Value index, mlir::Value extent,
                                   bool wrapNegative) = 0;
};

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_INTERFACES_ELEMENTSOURCE_H
