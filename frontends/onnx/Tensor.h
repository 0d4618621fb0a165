//===- Tensor.h - A value of the model being imported -----------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ONNX_TENSOR_H
#define TCC_FRONTENDS_ONNX_TENSOR_H

#include "frontends/Sizes.h"
#include "frontends/WeightStore.h"
#include "frontends/onnx/NarrowType.h"
#include <deque>

namespace tcc::onnx_import {

/// Values that the file gives: an initializer, a Constant node, a fixed input.
struct Literal {
  std::string name;
  mlir::RankedTensorType type;
  llvm::ArrayRef<char> bytes; // one byte a boolean; empty if left out
  std::shared_ptr<const void> owner;
  bool isLeftOut = false;
  bool isInitializer = false;
  /// What its bytes stand for if that is none of the module's types.
  const NarrowType *narrow = nullptr;
};

/// A tensor of the model, in any of the forms it is known in. The module's
/// value is made when an op first reads it as data, so that shape arithmetic
/// leaves no ops behind.
struct Tensor {
  mlir::RankedTensorType type;
  mlir::Value value;
  std::optional<Content> content;
  const Literal *literal = nullptr;
  /// What the elements of `type` stand for, of a tensor that only ops with
  /// OpRow::readsNarrow take; null for themselves.
  const NarrowType *narrow = nullptr;
  /// What such an op's input was before it was decoded; null for `type`.
  const NarrowType *decodedFrom = nullptr;
  /// Set for a sequence of tensors; the other fields are then unused.
  std::optional<llvm::SmallVector<Tensor *>> sequence;
  /// An optional without a value. A node that reads it sees an input that is
  /// not given.
  bool isAbsent = false;
  /// The result of a node that could not be imported: nothing that reads it is
  /// reported again.
  bool isInvalid = false;

  bool isTensor() const { return !sequence && !isAbsent && !isInvalid; }
};

/// Owns tensors and literals; addresses are stable.
struct TensorPool {
  std::deque<Tensor> tensors;
  std::deque<Literal> literals;

  Tensor *make(Tensor tensor) {
    return &tensors.emplace_back(std::move(tensor));
  }
  Tensor *makeLiteral(Literal literal) {
    literals.push_back(std::move(literal));
    Tensor tensor;
    tensor.type = literals.back().type;
    tensor.literal = &literals.back();
    tensor.narrow = literals.back().narrow;
    return make(std::move(tensor));
  }
  Tensor *makeAbsent() {
    Tensor tensor;
    tensor.isAbsent = true;
    return make(std::move(tensor));
  }
  Tensor *makeSequence(llvm::SmallVector<Tensor *> elements) {
    Tensor tensor;
    tensor.sequence = std::move(elements);
    return make(std::move(tensor));
  }
  Tensor *makeInvalid() {
    Tensor tensor;
    tensor.isInvalid = true;
    return make(std::move(tensor));
  }
};

} // namespace tcc::onnx_import

#endif // TCC_FRONTENDS_ONNX_TENSOR_H
