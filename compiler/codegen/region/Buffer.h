//===- Buffer.h - Elements of tensors in memory -----------------*- C++ -*-===//
//
// Tensors are row-major. In memory booleans are bytes and integers signless; in
// registers f16 and bf16 are f32, and booleans i1.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_COMPILER_CODEGEN_REGION_BUFFER_H
#define TCC_COMPILER_CODEGEN_REGION_BUFFER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"

namespace tcc::codegen {

using mlir::Value;
using mlir::ValueRange;

/// Bytes that an element takes in memory.
int64_t getStorageBytes(mlir::Type elementType);

/// Rounds `x`, an f32, to the values of `elementType` if that is narrower.
Value emitRounding(mlir::OpBuilder &b, mlir::Location loc, Value x,
                   mlir::Type elementType);

/// Memory that nothing else overlaps, but for those that say so.
class Buffer {
public:
  Buffer() = default;
  Buffer(Value pointer, mlir::Type elementType)
      : pointer(pointer), elementType(elementType) {}

  /// The element at `position` as a scalar.
  Value load(mlir::OpBuilder &b, mlir::Location loc, Value position) const;
  /// Stores a scalar, which is already rounded to the element type.
  void store(mlir::OpBuilder &b, mlir::Location loc, Value scalar,
             Value position) const;

  /// `count` adjacent elements as a vector. Elements are f64, f32 or integers.
  Value loadVector(mlir::OpBuilder &b, mlir::Location loc, Value position,
                   int64_t count) const;
  void storeVector(mlir::OpBuilder &b, mlir::Location loc, Value vector,
                   Value position) const;

  mlir::Type getElementType() const { return elementType; }
  Value getPointer() const { return pointer; }
  explicit operator bool() const { return bool(pointer); }

  /// Several threads may store to the same place; whose value stays is open.
  bool isAtomic = false;

  /// Scopes for LLVM's alias analysis: what this memory is, and is not.
  mlir::ArrayAttr scopes, otherScopes;

private:
  Value getAddress(mlir::OpBuilder &b, mlir::Location loc, Value position,
                   mlir::Type type) const;
  Value loadType(mlir::OpBuilder &b, mlir::Location loc, Value position,
                 mlir::Type type, int64_t alignment) const;
  void storeType(mlir::OpBuilder &b, mlir::Location loc, Value value,
                 Value position, int64_t alignment) const;

  Value pointer;
  mlir::Type elementType;
};

/// Tells LLVM that no two of `buffers` overlap.
void separate(mlir::MutableArrayRef<Buffer *> buffers);

} // namespace tcc::codegen

#endif // TCC_COMPILER_CODEGEN_REGION_BUFFER_H
