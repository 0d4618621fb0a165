//===- DLPack.h - The binary layout of DLPack tensors -----------*- C++ -*-===//
//
// The structs of DLPack's C ABI (dmlc/dlpack, version 0.x), under names of our
// own so that an embedder may include dlpack.h beside our headers.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_EXECUTOR_DLPACK_H
#define TCC_RUNTIME_EXECUTOR_DLPACK_H

#include "runtime/executor/Context.h"

namespace tcc::runtime::dlpack {

enum DeviceType : int32_t { kCpu = 1, kCuda = 2, kCudaHost = 3 };
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kBfloat = 4,
  kBool = 6
};

struct Tensor {
  void *data;
  int32_t deviceType;
  int32_t deviceId;
  int32_t rank;
  TypeCode code;
  uint8_t bits;
  uint16_t lanes;
  const int64_t *shape;
  const int64_t *strides; ///< in elements; null: dense row-major
  uint64_t byteOffset;
};

/// The view of a tensor in memory of the host or a CUDA device; an error for
/// any other layout.
Result<TensorView> viewOf(const Tensor &tensor);

} // namespace tcc::runtime::dlpack

#endif // TCC_RUNTIME_EXECUTOR_DLPACK_H
