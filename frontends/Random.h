//===- Random.h - Random numbers of a model ---------------------*- C++ -*-===//
//
// They are functions of a seed, a step and a key of each op (graph.random).
// Seed and step are 0 until a training step puts its own in their place: what
// is not trained draws the same numbers in each run, iterations of loops
// others.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_RANDOM_H
#define TCC_FRONTENDS_RANDOM_H

#include "frontends/Emitter.h"

namespace tcc {

/// Numbers in [0, 1), or of mean 0 and variance 1. They are made in f32, or f64
/// for that type, and cast.
mlir::Value drawNumbers(Emitter &emitter, graph::RandomKind kind,
                        llvm::ArrayRef<mlir::AffineExpr> extents,
                        mlir::Type elementType, int64_t key);

/// True with the probability that each element of p is.
mlir::Value drawBernoulli(Emitter &emitter, mlir::Value p, int64_t key);

/// `count` places, i64 [rows, count], of the last axis of `scores` [rows,
/// classes], the logarithms of what probabilities are in proportion to: the
/// largest score with noise of Gumbel's distribution.
mlir::Value drawClasses(Emitter &emitter, mlir::Value scores,
                        mlir::AffineExpr count, int64_t key);

} // namespace tcc

#endif // TCC_FRONTENDS_RANDOM_H
