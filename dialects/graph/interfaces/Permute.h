//===- Permute.h - Ops on operands in another order of axes -----*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_INTERFACES_PERMUTE_H
#define TCC_DIALECTS_GRAPH_INTERFACES_PERMUTE_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/SmallVector.h"

namespace tcc::graph {

/// The result of an op on permuted operands: axis i of `value` is axis
/// permutation[i] of the op's own result. Null where the op has no such form.
struct PermutedResult {
  mlir::Value value;
  llvm::SmallVector<int64_t> permutation;
};

/// [batch, channel, spatial...] to [batch, spatial..., channel].
llvm::SmallVector<int64_t> getChannelsLastPermutation(int64_t rank);

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_INTERFACES_PERMUTE_H
