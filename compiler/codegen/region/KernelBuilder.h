//===- KernelBuilder.h - Builds loops and index arithmetic ------*- C++ -*-===//
//
// The matrix and window kernels are written straight in scf, vector, arith
// and llvm. This builder keeps that readable: index arithmetic folds as it is
// built, and a loop takes its body as a function of the induction variable.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_KERNELBUILDER_H
#define TCC_COMPILER_CODEGEN_REGION_KERNELBUILDER_H

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include <optional>

namespace tcc::codegen {

using mlir::Value;
using mlir::ValueRange;

/// Row-major elements behind a pointer.
struct Memory {
  Value pointer;
  mlir::Type element;

  explicit operator bool() const { return bool(pointer); }
  /// With 16-bit floats as the integers of their bits: selected and shuffled
  /// as floats, LLVM would convert them to f32 and back.
  Memory asBits() const;
};

class KernelBuilder : public mlir::ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  Value index(int64_t value);
  Value add(Value x, Value y);
  Value sub(Value x, Value y);
  Value mul(Value x, Value y);
  /// Floor division and remainder of non-negative indices.
  Value div(Value x, Value y);
  Value rem(Value x, Value y);
  Value ceilDiv(Value x, int64_t divisor);
  Value min(Value x, Value y);
  Value max(Value x, Value y);
  Value less(Value x, Value y);
  Value equal(Value x, Value y);

  /// Adds the products of `indices` and `strides`.
  Value linearize(ValueRange indices, ValueRange strides);
  /// Splits a row-major position into one index per size, outermost first.
  llvm::SmallVector<Value> delinearize(Value position, ValueRange sizes);

  using Body = llvm::function_ref<void(Value)>;
  /// for (iv = from; iv < to; iv += step) body(iv)
  void loop(Value from, Value to, Value step, Body body);
  void loop(Value to, Body body) { loop(index(0), to, index(1), body); }
  using CarryBody =
      llvm::function_ref<llvm::SmallVector<Value>(Value, ValueRange)>;
  /// A loop that carries values; returns those of the last iteration.
  llvm::SmallVector<Value> loop(Value from, Value to, Value step,
                                ValueRange carried, CarryBody body);
  llvm::SmallVector<Value> loop(Value from, Value to, ValueRange carried,
                                CarryBody body) {
    return loop(from, to, index(1), carried, body);
  }
  void when(Value condition, llvm::function_ref<void()> then,
            llvm::function_ref<void()> otherwise = nullptr);

  /// The values of one of two branches.
  using Values = llvm::function_ref<llvm::SmallVector<Value>()>;
  llvm::SmallVector<Value> choose(Value condition, mlir::TypeRange types,
                                  Values then, Values otherwise);
  Value choose(Value condition, mlir::Type type,
               llvm::function_ref<Value()> then,
               llvm::function_ref<Value()> otherwise);

  /// The mask of lanes [0, end) of a vector; `end` is any of 32 bits.
  Value lanesBelow(int64_t lanes, Value end);
  Value zero(mlir::Type type);
  /// A scalar or vector with elements of type `wide`, exactly.
  Value widen(Value value, mlir::Type wide, bool isUnsigned);
  /// x * y + sum, of floats with one rounding. Scalars or vectors.
  Value multiplyAdd(Value x, Value y, Value sum);

  /// Elements are read and written as they are in memory; `at` counts them.
  Value load(Memory from, Value at);
  Value loadVector(Memory from, Value at, int64_t lanes);
  /// A scalar or a vector.
  void store(Value value, Memory to, Value at);
  /// Lanes outside `mask` are not read and keep `otherwise`.
  Value loadMasked(Memory from, Value at, Value mask, Value otherwise);
  /// Lanes outside `mask` are not written.
  void storeMasked(Value value, Memory to, Value at, Value mask);
  /// Lane i is the element at + 2 * i; zero outside `mask`, where nothing is
  /// read. Much less work than a gather.
  Value loadEverySecond(Memory from, Value at, Value mask);
  /// Lane i is the element at + offsets[i]; zero outside `mask`.
  Value gather(Memory from, Value at, Value offsets, Value mask);
  /// How near LLVM's prefetch brings a line.
  enum CacheLevel { secondLevel = 2, firstLevel = 3 };
  /// Brings the element into a cache; it need not exist.
  void prefetch(Memory from, Value at, CacheLevel level);
  /// Brings the element into the first level for a store; it need not exist.
  void prefetchForStore(Memory to, Value at);
  /// `count` elements on the stack until the kernel returns. In a loop they are
  /// the same for all iterations.
  Memory allocate(mlir::Type element, int64_t count);
  /// The memory from element `offset` on.
  Memory from(Memory memory, Value offset) {
    return {address(memory, offset), memory.element};
  }
  /// The memory from byte `offset` on.
  Memory view(Value pointer, int64_t offset, mlir::Type element);

private:
  Value address(Memory memory, Value at);
};

/// Bytes of an element.
inline int64_t bytesOf(mlir::Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

/// The value of an index known when the kernel is built.
std::optional<int64_t> constantOf(Value index);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_KERNELBUILDER_H
