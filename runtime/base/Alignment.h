//===- Alignment.h - Where tensors may begin --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_ALIGNMENT_H
#define TCC_RUNTIME_BASE_ALIGNMENT_H

#include <cstdint>

namespace tcc {

/// Tensors of the weights section, offsets and sizes in arenas and in a
/// worker's scratch, and what the runtime allocates are multiples of this, in
/// bytes: a cache line and the widest vector.
inline constexpr int64_t kTensorAlignment = 64;

/// The least multiple of kTensorAlignment that is not below `bytes`.
constexpr uint64_t alignTensor(uint64_t bytes) {
  return (bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
}

} // namespace tcc

#endif // TCC_RUNTIME_BASE_ALIGNMENT_H
