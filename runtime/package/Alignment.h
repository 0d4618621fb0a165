//===- Alignment.h - Of tensors and vectors in a package --------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_ALIGNMENT_H
#define TCC_RUNTIME_PACKAGE_ALIGNMENT_H

#include "runtime/package/Format.h"

#include <cstdint>

namespace tcc::runtime {

/// Whether the elements of a flatbuffers::Vector may be read as T: the verifier
/// checks where a vector begins, which is its length, not its elements.
template <typename T, typename Vector> bool isAligned(const Vector &vector) {
  return vector.size() == 0 ||
         reinterpret_cast<uintptr_t>(vector.Data()) % alignof(T) == 0;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_ALIGNMENT_H
