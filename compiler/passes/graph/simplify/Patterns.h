//===- Patterns.h - The rewrites of the simplify pass -----------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_SIMPLIFY_PATTERNS_H
#define TCC_COMPILER_PASSES_GRAPH_SIMPLIFY_PATTERNS_H

#include "compiler/decisions/Decisions.h"
#include "mlir/IR/PatternMatch.h"

namespace tcc {

/// x * 1, pow(x, 2), chains of casts, selects and comparisons that are decided.
void addAlgebraPatterns(mlir::RewritePatternSet &patterns);

/// Ops on constants, and splats as broadcast scalars.
void addConstantPatterns(mlir::RewritePatternSet &patterns);

/// Transposes, reshapes and broadcasts that cancel or go into matmuls.
void addTransposePatterns(mlir::RewritePatternSet &patterns);

/// Pointwise ops before reshapes and transposes, unit axes before transposes.
void addReorderPatterns(mlir::RewritePatternSet &patterns);

/// Sums of padded tensors as concatenations, reshapes before these.
void addConcatPatterns(mlir::RewritePatternSet &patterns);

/// Slices, gathers and pads that cancel or merge.
void addSlicePatterns(mlir::RewritePatternSet &patterns);

/// Taps of windows that read only padding; windows of one element.
void addWindowPatterns(mlir::RewritePatternSet &patterns);

/// Branches that are decided.
void addControlPatterns(mlir::RewritePatternSet &patterns, DecisionLog &log);

} // namespace tcc

#endif // TCC_COMPILER_PASSES_GRAPH_SIMPLIFY_PATTERNS_H
