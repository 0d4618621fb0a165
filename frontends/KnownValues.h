//===- KnownValues.h - Values that depend on no input -----------*- C++ -*-===//
#ifndef TCC_FRONTENDS_KNOWNVALUES_H
#define TCC_FRONTENDS_KNOWNVALUES_H

#include "dialects/graph/evaluate/HostTensor.h"
#include "frontends/WeightStore.h"
#include "mlir/IR/Value.h"

namespace tcc {

/// The integer that an element is: the evaluator keeps unsigned ones
/// sign-extended.
int64_t getInteger(Scalar element, mlir::Type type);

/// Computes small values of the module under construction.
class KnownValues {
public:
  explicit KnownValues(WeightStore &weights) : weights(weights) {}

  /// The elements of `value`; null if they depend on an input or are many.
  const HostTensor *evaluate(mlir::Value value);
  /// The weights that a known value was computed from decide what is compiled.
  void markStructural(mlir::Value value);
  /// To be called before ops are erased.
  void forget() { evaluated.clear(); }

private:
  const HostTensor *evaluate(mlir::Value value, int levels);
  std::optional<HostTensor> compute(mlir::Value value, int levels);

  WeightStore &weights;
  /// Values computed from constants, and those found not to be.
  llvm::DenseMap<mlir::Value, std::optional<HostTensor>> evaluated;
};

} // namespace tcc

#endif // TCC_FRONTENDS_KNOWNVALUES_H
