//===- Effects.h - What commands share --------------------------*- C++ -*-===//
#ifndef TCC_DIALECTS_EXEC_EFFECTS_H
#define TCC_DIALECTS_EXEC_EFFECTS_H

#include "dialects/exec/ExecOps.h"

namespace tcc::exec {

/// What commands must not use in another order if one of them changes it: a
/// place in memory, a size slot, a token, how far a lane has come, or whose
/// turn it is in a group of ranks.
struct Resource {
  enum class Kind { place, slot, token, lane, group };
  Kind kind;
  uintptr_t id;                                 ///< an op, or a number
  StorageClass storage = StorageClass::scratch; ///< of a place
  bool isNext = false; ///< the place of a state's next value

  bool operator==(const Resource &other) const = default;
};

/// The place that `root` lies in. No bytes of two places are the same ones.
Resource getPlace(BufferOp root);

/// What a command uses, with all that is nested in it. From these, and nothing
/// else, follows which commands of a block may change places.
struct Effects {
  llvm::SetVector<Resource> reads, writes;
};
Effects getEffects(mlir::Operation *command);

/// Bytes that a command reads or writes: from `begin` to `end` of a place.
struct Access {
  Resource place;
  int64_t begin, end;
  bool isWrite;
};

/// The bytes that a command uses, with all that is nested in it, as far as
/// lanes must agree on them: a fault is noted by whoever finds it.
llvm::SmallVector<Access> getAccesses(mlir::Operation *command);

/// True if two commands with these must not run at the same time.
bool areInConflict(llvm::ArrayRef<Access> lhs, llvm::ArrayRef<Access> rhs);

/// True if the two have bytes in common.
bool mayOverlap(BufferOp a, BufferOp b);

} // namespace tcc::exec

template <> struct llvm::DenseMapInfo<tcc::exec::Resource> {
  using Resource = tcc::exec::Resource;
  static Resource getEmptyKey() {
    return {Resource::Kind::slot, ~uintptr_t(0)};
  }
  static Resource getTombstoneKey() {
    return {Resource::Kind::slot, ~uintptr_t(1)};
  }
  static unsigned getHashValue(const Resource &resource) {
    return llvm::hash_combine(unsigned(resource.kind), resource.id,
                              unsigned(resource.storage), resource.isNext);
  }
  static bool isEqual(const Resource &lhs, const Resource &rhs) {
    return lhs == rhs;
  }
};

#endif // TCC_DIALECTS_EXEC_EFFECTS_H
