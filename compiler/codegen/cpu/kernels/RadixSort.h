//===- RadixSort.h - Sorts keys that have indices ---------------*- C++ -*-===//
//
// A digit of 8 bits at a time, the lowest first: equal keys stay in order. A
// digit that all keys share moves nothing.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_CPU_KERNELS_RADIXSORT_H
#define TCC_COMPILER_CODEGEN_CPU_KERNELS_RADIXSORT_H

#include "compiler/codegen/region/KernelBuilder.h"

namespace tcc::cpu {

using codegen::KernelBuilder;
using codegen::Memory;
using mlir::Value;

/// Unsigned keys in increasing order, with an index each. There is room for
/// twice `capacity`: they lie at `from`, 0 or capacity.
class RadixSort {
public:
  RadixSort(KernelBuilder &b, Value scratch, mlir::Type key, mlir::Type index,
            int64_t capacity);
  static int64_t getBytes(mlir::Type key, mlir::Type index, int64_t capacity);

  /// Sorts `count` keys at `from`; returns where they lie then.
  Value sort(Value from, Value count);

  Memory keys, indices;

private:
  Value getDigit(Value key, Value pass);
  void count(Value from, Value count);
  void addUp(Value first);
  void move(Value from, Value to, Value count, Value pass);

  KernelBuilder &b;
  Memory counts; ///< of each digit and its values, i32
  int64_t capacity;
};

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_KERNELS_RADIXSORT_H
