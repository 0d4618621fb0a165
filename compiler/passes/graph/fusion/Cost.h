//===- Cost.h - What a kernel costs -----------------------------*- C++ -*-===//
//
// The model behind fusion: a kernel takes its launch plus the longer of moving
// its bytes and doing its arithmetic. Unknown dimensions count at their upper
// bounds.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_COST_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_COST_H

#include "dialects/graph/GraphOps.h"
#include "llvm/ADT/DenseMap.h"

namespace tcc::fusion {

/// One core of a current server CPU; only the ratios matter for decisions.
struct Machine {
  /// A current data-centre GPU.
  static Machine getDevice();

  /// Activations mostly come from the last-level cache.
  double bytesPerMicrosecond = 30e3;
  /// Scalar bodies, vectorised by the compiler.
  double flopsPerMicrosecond = 30e3;
  /// The micro-kernel of matrix multiplication.
  double contractionFlopsPerMicrosecond = 200e3;
  /// A library of matrix products; 0: there is none.
  double libraryFlopsPerMicrosecond = 0;
  /// Starting a kernel: claiming tasks, cold instructions.
  double launchMicroseconds = 0.5;
  /// Elements that are computed while an operand is packed are computed one by
  /// one, not in vectors.
  double packingFactor = 4;
  /// Rows (columns) of the result for which a packed operand is used again.
  double packedReuse = 128;
  /// Up to this many flops an element is cheaper to compute again than to
  /// load.
  double cheapFlops = 8;
  /// Tasks that keep all of the machine busy, or nearly.
  double leastTasks = 8;
};

/// What a kernel does.
struct Work {
  double bytesRead = 0;
  double bytesWritten = 0;
  double flops = 0;
  double contractionFlops = 0;
  double libraryFlops = 0; // of products at a library's speed: on tensor cores
};

double getMicroseconds(const Work &work, const Machine &machine);

/// Answers questions about sizes and costs, each computed once.
class CostModel {
public:
  CostModel(mlir::ModuleOp module, const Machine &machine = {});
  CostModel(mlir::ArrayRef<graph::SymbolAttr> symbols,
            const Machine &machine = {})
      : machine(machine), symbols(symbols) {}

  const Machine &getMachine() const { return machine; }

  /// Product of the extents, and its upper bound.
  mlir::AffineExpr getCount(mlir::Type tensor) { return getSize(tensor).count; }
  double getMaxCount(mlir::Type tensor) { return getSize(tensor).maxCount; }
  double getMaxBytes(mlir::Type tensor);
  double getMaximum(mlir::AffineExpr extent) const;
  double getMinimum(mlir::AffineExpr extent) const;

  /// Flops for one element of the result of a pointwise or element op.
  double getElementFlops(mlir::Operation *op);

  /// Flops of an op that decides the loops of its kernel.
  Work getKernelWork(mlir::Operation *op);

private:
  Work getAttentionWork(graph::AttentionOpInterface op);

  struct Size {
    mlir::AffineExpr count;
    double maxCount;
  };
  const Size &getSize(mlir::Type tensor);

  Machine machine;
  mlir::SmallVector<graph::SymbolAttr> symbols;
  llvm::DenseMap<mlir::Type, Size> sizes;
  /// By name, attributes and types: the body depends on nothing else.
  llvm::DenseMap<std::pair<const void *, mlir::Attribute>, double> scalarFlops;
};

/// How operand `operand` is indexed by the indices of the result; null if the
/// op does not say or it depends on data.
mlir::AffineMap getReadMap(mlir::Operation *op, unsigned operand);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_COST_H
