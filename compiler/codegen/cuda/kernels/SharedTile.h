//===- SharedTile.h - A block's part of a matrix ----------------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CUDA_KERNELS_SHAREDTILE_H
#define TCC_COMPILER_CODEGEN_CUDA_KERNELS_SHAREDTILE_H

#include "compiler/codegen/cuda/kernels/DeviceKernel.h"

namespace tcc::cuda {

/// [steps][lanes] elements in shared memory, from `start` on: a product sums
/// over the steps. Both are multiples of eight.
struct SharedTile {
  Buffer memory;
  Value start;
  int64_t lanes, steps;

  /// A few lanes more, so that the steps of one lane lie in different banks.
  static int64_t getPitch(int64_t lanes) { return lanes + 4; }
  static int64_t getSize(int64_t lanes, int64_t steps) {
    return steps * getPitch(lanes);
  }

  struct Place {
    Value lane, step;
  };
  /// A place for each number: neighbours are adjacent along the lanes or the
  /// steps. A warp's are in different banks.
  Place split(KernelBuilder &b, Value number, bool stepsAreAdjacent) const;

  void store(KernelBuilder &b, Value element, Place place) const;
  /// `count` neighbouring lanes.
  llvm::SmallVector<Value> read(KernelBuilder &b, Place first,
                                int64_t count) const;

  using ElementFunction = llvm::function_ref<Value(Value lane, Value step)>;
  /// Fills the tile by `threads` threads, of which this is number `thread`:
  /// some elements at once are read and then stored.
  void fill(KernelBuilder &b, Value thread, int64_t threads,
            bool stepsAreAdjacent, ElementFunction element) const;

private:
  Value getPosition(KernelBuilder &b, Place place) const;
};

/// Adds the products of all pairs of x and y, those of y innermost, to `sums`.
void addProducts(KernelBuilder &b, ValueRange x, ValueRange y,
                 llvm::MutableArrayRef<Value> sums);

} // namespace tcc::cuda

#endif // TCC_COMPILER_CODEGEN_CUDA_KERNELS_SHAREDTILE_H
