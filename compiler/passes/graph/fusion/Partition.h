//===- Partition.h - Chooses the kernels of a block -------------*- C++ -*-===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_PARTITION_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_PARTITION_H

#include "compiler/passes/graph/fusion/KernelGraph.h"

namespace tcc::fusion {

/// A producer and a consumer that stayed two kernels.
struct Refusal {
  mlir::Operation *producer, *consumer;
  llvm::StringRef reason;
  double bytes; // written by one and read by the other
  /// What the two kernels take, and what one would; 0 where it cannot be.
  double microsecondsApart, microsecondsTogether;
};

/// Merges groups and copies cheap producers, the largest saving first, until
/// nothing saves time. Fails with an error on an op that cannot be a kernel.
mlir::LogicalResult choosePartition(KernelGraph &graph);

/// Why the kernels that exchange values are not one.
std::vector<Refusal> explainPartition(KernelGraph &graph);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_PARTITION_H
