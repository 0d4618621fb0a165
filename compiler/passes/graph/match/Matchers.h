//===- Matchers.h - What is known about values ------------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_MATCH_MATCHERS_H
#define TCC_COMPILER_PASSES_GRAPH_MATCH_MATCHERS_H

#include "dialects/graph/GraphOps.h"
#include "mlir/IR/Builders.h"
#include <optional>

namespace tcc {

/// The value that all elements of `tensor` have: a constant, seen through
/// broadcasts and reshapes.
std::optional<double> getSplat(mlir::Value tensor);

/// True if `value`, computed from constants of the element type of `like`, was
/// meant to be `expected`: it is less than a unit in the last place off.
bool isClose(double value, double expected, mlir::Value like);

/// True if all elements of `tensor` are close to `expected`.
bool isSplat(mlir::Value tensor, double expected);

/// `value` broadcast to `type`.
mlir::Value makeSplat(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::RankedTensorType type, double value);

/// `x` under reshapes that only add or drop unit axes.
mlir::Value lookThroughUnitReshapes(mlir::Value x);

/// True if `op` reads single elements or slices of its operand, by index.
bool gathers(mlir::Operation *op);

/// True if `value` depends on weights and constants alone, by a few ops.
bool isParameter(mlir::Value value);

/// The operands of a commutative op as (a, b) where `accept(a)` holds,
/// whichever side that is; nullopt if neither.
std::optional<std::pair<mlir::Value, mlir::Value>>
matchEither(mlir::Operation *op, llvm::function_ref<bool(mlir::Value)> accept);

/// `x` with its unit axes placed as `type` says; `x` itself if it has that
/// type.
mlir::Value reshapeTo(mlir::OpBuilder &builder, mlir::Location loc,
                      mlir::Value x, mlir::RankedTensorType type);

inline mlir::RankedTensorType getTensorType(mlir::Value value) {
  return mlir::cast<mlir::RankedTensorType>(value.getType());
}
inline int64_t getRank(mlir::Value value) {
  return getTensorType(value).getRank();
}

/// Bytes of a tensor of static shape.
int64_t getBytes(mlir::RankedTensorType type);

inline bool isFloat(mlir::Value value) {
  return mlir::isa<mlir::FloatType>(getTensorType(value).getElementType());
}

/// True if `value` has one use, in the block of its op: the op can move there
/// and is not computed more often, as it would be in a loop.
bool hasOneLocalUse(mlir::Value value);

/// The op of type `Op` that defines `value`, if it has one local use.
template <typename Op> Op getSingleUse(mlir::Value value) {
  auto op = value.getDefiningOp<Op>();
  return op && hasOneLocalUse(value) ? op : Op();
}

} // namespace tcc

#endif // TCC_COMPILER_PASSES_GRAPH_MATCH_MATCHERS_H
