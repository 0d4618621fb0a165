//===- Tensor.h - A tensor that owns its elements ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_TENSOR_H
#define TCC_RUNTIME_PACKAGE_TENSOR_H

#include "runtime/base/Memory.h"
#include "runtime/package/DType.h"

#include <vector>

namespace tcc::runtime {

/// Dense and row-major, as files and tools hold it.
struct Tensor {
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  Memory data;

  /// Uninitialised elements; an error for a shape that has no size.
  static Result<Tensor> allocate(DType dtype, std::vector<int64_t> shape);
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_TENSOR_H
