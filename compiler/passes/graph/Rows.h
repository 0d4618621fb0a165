//===- Rows.h - Reductions brought back to their operand's shape *- C++ -*-===//
//
// What exporters write to combine a tensor with one value of each of its rows:
// reduce, scale, reshape to unit axes, broadcast back.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_ROWS_H
#define TCC_COMPILER_PASSES_GRAPH_ROWS_H

#include "compiler/passes/graph/match/Matchers.h"

namespace tcc {

/// A reduction times a constant.
struct ScaledReduction {
  graph::ReduceOp reduce;
  double coefficient = 1.0;

  /// True if it is the mean along the axes.
  bool isMean();
  bool isSumOf(mlir::Value x) {
    return reduce.getKind() == graph::ReduceKind::sum && reduce.getX() == x;
  }
};

/// `value` as a scaled reduction, under views that only add unit axes.
std::optional<ScaledReduction> matchReduction(mlir::Value value);

/// What `value` repeats along `axes`, null if it is not a broadcast along
/// these: the result has an extent of 1 there and those of `value` elsewhere.
mlir::Value getRepeated(mlir::Value value, llvm::ArrayRef<int64_t> axes);

/// `value` as a scaled reduction of a tensor of its shape, repeated along the
/// axes that were reduced.
std::optional<ScaledReduction> matchRow(mlir::Value value);

} // namespace tcc

#endif // TCC_COMPILER_PASSES_GRAPH_ROWS_H
