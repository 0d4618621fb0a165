//===- Schema.h - Signatures of PyTorch's operators -------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_ATEN_SCHEMA_H
#define TCC_FRONTENDS_ATEN_SCHEMA_H

#include "frontends/aten/Item.h"

namespace tcc::aten {

struct Parameter {
  llvm::StringRef type; // "Tensor", "int[2]", ...
  llvm::StringRef name;
  bool isOptional = false; // may be None
  bool isKeyword = false;  // not given by position
  std::optional<llvm::StringRef> fallback;

  bool accepts(const Item &item) const;
};

/// A signature in PyTorch's notation,
///   name(Tensor self, int dim=-1, *, ScalarType? dtype=None) -> Tensor
/// with one more type, Operand: a tensor or a number. Parameters that say where
/// and how a tensor lies are left out. "(a)" marks results that are views of
/// the first argument, "(a?)" those that are copies where its strides allow no
/// view, "[]" a list of results.
struct Schema {
  llvm::StringRef name;
  llvm::SmallVector<Parameter, 8> parameters;
  bool isView = false, mayCopy = false, isList = false;

  static Schema parse(llvm::StringRef text);
  std::optional<size_t> find(llvm::StringRef name) const;
};

/// The item that a default stands for.
Item readDefault(llvm::StringRef text, mlir::MLIRContext *context);

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_SCHEMA_H
