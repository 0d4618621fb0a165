//===- CausalMask.h - Masks that hide what comes later ----------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_CAUSALMASK_H
#define TCC_COMPILER_PASSES_GRAPH_CAUSALMASK_H

#include "dialects/graph/GraphOps.h"

namespace tcc {

/// Says of an AttentionOpInterface that its mask isCausalMask: its kernel need
/// not read it.
inline constexpr llvm::StringLiteral kCausalAttr = "causal";

/// True if `mask`, [..., queries, keys], is known to be -inf where the key's
/// index is larger than the query's, and else 0.
bool isCausalMask(mlir::Value mask);

} // namespace tcc

#endif // TCC_COMPILER_PASSES_GRAPH_CAUSALMASK_H
