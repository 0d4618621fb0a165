//===- WeightStore.h - The tensors of a model -------------------*- C++ -*-===//
//
// graph.weight "name" refers to an entry here. Bytes are little-endian and
// row-major, a boolean is one byte; they may be unaligned, as they often lie in
// a mapped file.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_WEIGHTSTORE_H
#define TCC_FRONTENDS_WEIGHTSTORE_H

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/StringMap.h"
#include <deque>
#include <memory>
#include <string>
#include <vector>

namespace tcc {

/// What a tensor is to its model, as far as the model's file says.
enum class WeightRole { unknown, parameter, buffer, constant };

struct Weight {
  std::string name;
  mlir::RankedTensorType type; // static
  /// Empty if the values were left out (`--weights=none`).
  llvm::ArrayRef<char> bytes;
  /// Keeps `bytes` alive: a mapping, a parsed model, a buffer.
  std::shared_ptr<const void> owner;
  /// The compiled code depends on the value: it decided a shape or a branch,
  /// matched a pattern, or became a graph.constant.
  bool structural = false;
  WeightRole role = WeightRole::unknown;
  /// The tensors that the exporter computed it from; empty if it is as it was.
  std::vector<std::string> sources;
};

/// The bytes that one tensor of `type` takes in the store.
int64_t getByteSize(mlir::RankedTensorType type);
/// Bytes of one element.
int64_t getElementByteSize(mlir::Type elementType);

class WeightStore {
public:
  /// Adds a weight, or returns the one that has the name already.
  Weight &add(Weight weight);

  Weight *find(llvm::StringRef name);
  const Weight *find(llvm::StringRef name) const;
  /// The matrix that the exporter stored instead of the transpose of it which
  /// the model calls `name`; null if there is none.
  Weight *findTranspose(llvm::StringRef name);

  /// In the order of addition.
  const std::deque<Weight> &get() const { return weights; }

private:
  std::deque<Weight> weights;
  llvm::StringMap<Weight *> byName;
};

} // namespace tcc

#endif // TCC_FRONTENDS_WEIGHTSTORE_H
