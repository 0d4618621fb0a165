//===- IterationSums.h - Sums over the iterations of a loop -----*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_OPS_ITERATIONSUMS_H
#define TCC_DIALECTS_GRAPH_OPS_ITERATIONSUMS_H

#include "dialects/graph/ops/TensorEmitter.h"

#include "llvm/ADT/SetVector.h"

namespace tcc::graph {

/// The values of a loop's `body` that are others in each iteration.
llvm::DenseSet<mlir::Value> findVarying(mlir::Block &body);

/// Sums of values of a loop's body over all iterations. What the loop has to
/// carry or to give for them is collected first; then, with the loop's results,
/// the sums are emitted behind it.
class IterationSums {
public:
  explicit IterationSums(mlir::Block &body)
      : body(body), varying(findVarying(body)) {}

  /// Whether its sum takes a product of all iterations: less than the products
  /// of each.
  bool hasProduct(mlir::Value value) const;
  /// Collects what the sum of `value` takes.
  void collect(mlir::Value value);
  /// What is carried, as sums, and what is scanned, in order.
  llvm::ArrayRef<mlir::Value> getCarried() const {
    return carried.getArrayRef();
  }
  llvm::ArrayRef<mlir::Value> getScanned() const {
    return scanned.getArrayRef();
  }
  /// Its place among what is scanned.
  unsigned scan(mlir::Value value);

  /// The sum of a collected value. `results` are those of the loop for what is
  /// carried, then for what is scanned.
  mlir::Value emit(const TensorEmitter &emitter, mlir::Value value,
                   mlir::ValueRange results);

private:
  mlir::Block &body;
  llvm::DenseSet<mlir::Value> varying;
  llvm::SetVector<mlir::Value> carried, scanned;

  bool isScannedProduct(mlir::Value value) const;
  mlir::Value getMoved(mlir::Value value) const;
  ReduceOp getReduced(mlir::Value value) const;
  mlir::Value stackDepth(const TensorEmitter &emitter, mlir::Value stacked,
                         bool isLast);
};

} // namespace tcc::graph

#endif // TCC_DIALECTS_GRAPH_OPS_ITERATIONSUMS_H
