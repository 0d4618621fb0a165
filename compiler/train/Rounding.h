//===- Rounding.h - Random rounding to narrower floats ----------*- C++ -*-===//
#ifndef TCC_COMPILER_TRAIN_ROUNDING_H
#define TCC_COMPILER_TRAIN_ROUNDING_H

#include "dialects/graph/ops/TensorEmitter.h"

namespace tcc::train {

/// One of the two values of `narrow`, bf16 or f16, around x, which is f32: the
/// one that is not nearest with a probability of x's distance from the nearest
/// one over the distance of the two, so that x is the mean. `random` is uniform
/// in [0, 1). The result is f32; what is not finite stays.
graph::Expr roundRandomly(graph::Expr x, graph::Expr random,
                          mlir::FloatType narrow);

} // namespace tcc::train

#endif // TCC_COMPILER_TRAIN_ROUNDING_H
