//===- Cost.h - What a kernel costs -----------------------------*- C++ -*-===//
//
// The model behind fusion: a kernel takes its launch plus the longer of moving
// its bytes and doing its arithmetic. Unknown dimensions count at their upper
// bounds.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_PASSES_GRAPH_FUSION_COST_H
#define TCC_COMPILER_PASSES_GRAPH_FUSION_COST_H

#include "compiler/target/Target.h"
#include "dialects/graph/GraphOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include <algorithm>
#include <map>
#include <optional>

namespace tcc::fusion {

/// What a kernel does.
struct Work {
  double bytesRead = 0;
  double bytesWritten = 0;
  double flops = 0;
  double contractionFlops = 0;
  double libraryFlops = 0; // of products at a library's speed: on tensor cores
};

/// Microseconds of a kernel, of which its bytes and its arithmetic take theirs
/// at the same time.
struct Times {
  double launch, memory, arithmetic;

  double getAll() const { return launch + std::max(memory, arithmetic); }
};

Times getTimes(const Work &work, const Machine &machine);
double getMicroseconds(const Work &work, const Machine &machine);

/// A number of elements or of flops: its upper bound and, where a region is
/// counted exactly, what it is of the symbols.
struct Count {
  double most = 0;
  mlir::AffineExpr exact = {}; ///< null where it is not
};

Count operator+(Count x, Count y);
Count operator*(Count x, Count times);
/// The one with the lower upper bound.
Count min(Count x, Count y);

/// Bytes of an element of `tensor` as it is stored.
int64_t getElementBytes(mlir::Type tensor);

/// Answers questions about sizes and costs, each computed once.
class CostModel {
public:
  CostModel(mlir::ArrayRef<graph::SymbolAttr> symbols, const Target &target)
      : target(target), symbols(symbols) {}
  CostModel(mlir::ModuleOp module, const Target &target);

  const Target &getTarget() const { return target; }
  /// Whether `anchor`, where it packs what `op` makes, reads the elements where
  /// those of op's operand lie; `anchor` may be null.
  bool isInPlace(mlir::Operation *op, mlir::Operation *anchor) const;
  const Machine &getMachine() const { return target.getMachine(); }

  /// Product of the extents, and its upper bound.
  mlir::AffineExpr getCount(mlir::Type tensor) { return getSize(tensor).count; }
  double getMaxCount(mlir::Type tensor) { return getSize(tensor).maxCount; }
  double getMaxBytes(mlir::Type tensor);
  double getMaximum(mlir::AffineExpr extent) const;
  double getMinimum(mlir::AffineExpr extent) const;

  /// Flops for one element of the result of a pointwise or element op.
  double getElementFlops(mlir::Operation *op);
  /// How many times an element that the loops over `space` compute costs what
  /// it would in vectors. These are along rows or, where a kernel of rows moves
  /// nothing on the way, along other axes.
  double getLoopFactor(graph::KernelKind kind, mlir::RankedTensorType space,
                       llvm::ArrayRef<mlir::Operation *> members) const;

  /// Flops of an op that decides the loops of its kernel.
  Work getKernelWork(mlir::Operation *op);
  /// The same as one sum, of the symbols; of attention its upper bound.
  mlir::AffineExpr getKernelFlops(mlir::Operation *op);

private:
  Work getAttentionWork(graph::AttentionOpInterface op);

  struct Size {
    mlir::AffineExpr count;
    double maxCount;
  };
  const Size &getSize(mlir::Type tensor);

  const Target &target;
  mlir::SmallVector<graph::SymbolAttr> symbols;
  llvm::DenseMap<mlir::Type, Size> sizes;
  /// By the bytes of pointers to name, attributes and types: the body depends
  /// on nothing else.
  llvm::StringMap<double> scalarFlops;
};

/// A cost model for each target that a module has kernels for.
class CostModels {
public:
  explicit CostModels(mlir::ModuleOp module) : module(module) {}
  CostModel &get(const Target &target);

private:
  mlir::ModuleOp module;
  std::map<const Target *, CostModel> models;
};

/// How often each element of a packed operand is read: once for each block of
/// rows (columns) of the result. Nullopt: the operand is read where it lies.
std::optional<Count> getPackedReads(mlir::Operation *anchor, unsigned operand,
                                    CostModel &model);

/// How operand `operand` is indexed by the indices of the result; null if the
/// op does not say or it depends on data.
mlir::AffineMap getReadMap(mlir::Operation *op, unsigned operand);

} // namespace tcc::fusion

#endif // TCC_COMPILER_PASSES_GRAPH_FUSION_COST_H
