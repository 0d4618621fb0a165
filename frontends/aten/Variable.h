//===- Variable.h - Tensors that code writes to -----------------*- C++ -*-===//
//
// A tensor of PyTorch is a place: operators in place and views share it. A
// Variable is such a place, and has the value that it holds at this point of
// the code. A view keeps the movement ops that make it from its base; after a
// write to the base it is made again, and a write to it goes back through them.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_ATEN_VARIABLE_H
#define TCC_FRONTENDS_ATEN_VARIABLE_H

#include "frontends/Emitter.h"
#include "frontends/WeightStore.h"
#include "frontends/aten/Item.h"
#include "llvm/ADT/SetVector.h"

namespace tcc::aten {

struct Variable {
  mlir::Value value; // null until a stored tensor is read
  /// The stored tensor that it is at first.
  std::optional<Weight> stored;
  /// A tensor of rank 0 that stands for a number of the code.
  std::optional<Item> number;

  Variable *base = nullptr;
  /// The outermost base of a view.
  Variable *root = nullptr;
  /// The ops from the base's value to this one's.
  llvm::SmallVector<mlir::Operation *, 4> chain;
  /// Writes to the outermost base, and those that `value` knows of.
  int version = 0, seen = 0;

  /// Its elements are known to lie in row-major order. Of a base.
  bool isDense = false;
  /// Bases that share its elements or are copies of them: strides decide, which
  /// are not known. After a write to one the others are not known.
  std::shared_ptr<llvm::SetVector<Variable *>> mates;
  bool isUnknown = false;

  Variable *getRoot() { return root ? root : this; }
};

/// What `value` is made from by movement alone.
mlir::Value getOrigin(mlir::Value value);
/// The current value; null after failing.
mlir::Value read(Emitter &emitter, Variable &variable);
/// Puts `value` of the variable's type into it and its bases.
void write(Emitter &emitter, Variable &variable, mlir::Value value);
/// Makes `view`, whose value was computed from `base`'s, a view of it if only
/// movement lies between.
void setBase(Variable &view, Variable &base);
/// The same where PyTorch makes a copy unless the base's strides allow a view.
void setBaseOrCopy(Variable &view, Variable &base);

} // namespace tcc::aten

#endif // TCC_FRONTENDS_ATEN_VARIABLE_H
