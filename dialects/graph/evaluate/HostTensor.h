//===- HostTensor.h - Tensors of the reference evaluator --------*- C++ -*-===//
#ifndef TCC_DIALECTS_GRAPH_EVALUATE_HOSTTENSOR_H
#define TCC_DIALECTS_GRAPH_EVALUATE_HOSTTENSOR_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/Support/Error.h"
#include <vector>

namespace tcc {

/// One element: `f` if the element type is a float, else `i`, sign-extended
/// from the type's width whatever its signedness (a boolean is 0 or 1).
union Scalar {
  double f;
  int64_t i;
};

/// A tensor of static shape in row-major order.
struct HostTensor {
  mlir::RankedTensorType type;
  std::vector<Scalar> elements;

  bool isFloat() const {
    return mlir::isa<mlir::FloatType>(type.getElementType());
  }
  llvm::ArrayRef<int64_t> shape() const { return type.getShape(); }
  int64_t extent(int64_t axis) const { return type.getDimSize(axis); }

  /// The position in `elements` of the element at `indices`.
  int64_t offset(llvm::ArrayRef<int64_t> indices) const;
};

/// The elements of `value`, which must not be a resource handle.
llvm::Expected<HostTensor> readAttribute(mlir::ElementsAttr value);
mlir::DenseElementsAttr makeAttribute(const HostTensor &tensor);

/// Little-endian elements without padding, a byte for each boolean.
llvm::Expected<HostTensor> readBytes(mlir::RankedTensorType type,
                                     llvm::ArrayRef<char> bytes);
std::vector<char> makeBytes(const HostTensor &tensor);

/// `value` wrapped (integers) or rounded to nearest even (floats) to `type`.
Scalar roundTo(mlir::Type type, Scalar value);

/// `value` read as a two's complement number of `width` bits; a boolean is 0
/// or 1.
int64_t signExtend(int64_t value, unsigned width);
/// `value` read as an unsigned number of `width` bits.
uint64_t zeroExtend(int64_t value, unsigned width);

/// Calls `body` for every index of `shape`, in row-major order, until it
/// returns an error.
llvm::Error
forEachIndex(llvm::ArrayRef<int64_t> shape,
             llvm::function_ref<llvm::Error(llvm::ArrayRef<int64_t>)> body);

} // namespace tcc

#endif // TCC_DIALECTS_GRAPH_EVALUATE_HOSTTENSOR_H
