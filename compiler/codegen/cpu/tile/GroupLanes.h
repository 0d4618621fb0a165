//===- GroupLanes.h - Vectors along channels in groups ----------*- C++ -*-===//
//
// A result has its channels, or filters, last, in groups of `groupSize`; a
// group goes with `groupInputs` channels of an input, no more than it has
// itself. A vector of the result holds whole groups, and the inputs that go
// with it are neighbours too.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_GROUPLANES_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_GROUPLANES_H

#include "compiler/codegen/region/KernelBuilder.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using mlir::Value;

struct GroupLanes {
  int64_t lanes, groupSize, groupInputs;

  /// The channels of the input that whole groups of `channels` go with.
  Value toInputs(KernelBuilder &b, Value channels) const;
  /// The first `count` lanes.
  Value makeMask(KernelBuilder &b, Value count) const;
  /// The lanes of a vector of inputs that go with the first `inside` channels
  /// of the result, all if that is null; null if these are all lanes.
  Value makeInputMask(KernelBuilder &b, Value inside) const;
  /// The input `number` of each lane's group, of a vector of inputs.
  Value spread(KernelBuilder &b, Value inputs, int64_t number) const;

  /// Covers channels [from, to), a multiple of `divisor`, by blocks of
  /// `vectorsAtOnce` vectors, then of one, the last of which may have fewer
  /// than `lanes` channels: `inside`, null if it has all.
  using Block =
      llvm::function_ref<void(Value first, int64_t vectors, Value inside)>;
  void walk(KernelBuilder &b, Value from, Value to, int64_t divisor,
            int64_t vectorsAtOnce, Block emit) const;
};

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_GROUPLANES_H
