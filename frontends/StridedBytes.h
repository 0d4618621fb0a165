//===- StridedBytes.h - Tensors within stored bytes -------------*- C++ -*-===//
#ifndef TCC_FRONTENDS_STRIDEDBYTES_H
#define TCC_FRONTENDS_STRIDEDBYTES_H

#include "frontends/WeightStore.h"

namespace tcc {

/// Bytes that tensors of one file which are not in row-major order may take:
/// their strides may make them far larger than the file.
constexpr int64_t kMinCopiedBytes = int64_t(64) << 20, kMaxCopiesOfFile = 4;

/// What is left of them.
struct CopyBudget {
  explicit CopyBudget(int64_t fileSize)
      : left(std::max(kMinCopiedBytes, fileSize * kMaxCopiesOfFile)) {}
  int64_t left;
};

/// Gives `weight`, of a static type, its bytes: the elements of `storage` from
/// `offset` on with these strides, in elements. They stay where they are if
/// they are in row-major order. False if they do not lie within the storage, or
/// copies exceed the budget.
bool takeBytes(Weight &weight, llvm::ArrayRef<char> storage,
               std::shared_ptr<const void> owner, int64_t offset,
               llvm::ArrayRef<int64_t> strides, CopyBudget &budget);

/// The type of these extents if they are those of a tensor that can be.
mlir::RankedTensorType makeStaticType(llvm::ArrayRef<int64_t> extents,
                                      mlir::Type elementType);

} // namespace tcc

#endif // TCC_FRONTENDS_STRIDEDBYTES_H
