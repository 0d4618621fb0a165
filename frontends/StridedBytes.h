//===- StridedBytes.h - Tensors within stored bytes -------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_STRIDEDBYTES_H
#define TCC_FRONTENDS_STRIDEDBYTES_H

#include "frontends/WeightStore.h"

namespace tcc {

/// Gives `weight`, of a static type, its bytes: the elements of `storage` from
/// `offset` on with these strides, in elements. They stay where they are if
/// they are in row-major order. False if they do not lie within the storage.
bool takeBytes(Weight &weight, llvm::ArrayRef<char> storage,
               std::shared_ptr<const void> owner, int64_t offset,
               llvm::ArrayRef<int64_t> strides);

/// The type of these extents if they are those of a tensor that can be.
mlir::RankedTensorType makeStaticType(llvm::ArrayRef<int64_t> extents,
                                      mlir::Type elementType);

} // namespace tcc

#endif // TCC_FRONTENDS_STRIDEDBYTES_H
