//===- Widen.h - Elements of a wider type -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_WIDEN_H
#define TCC_RUNTIME_DATA_WIDEN_H

#include "runtime/package/Tensor.h"

namespace tcc::runtime {

/// Whether `wide` is another type, and holds every value of `narrow`: integers
/// in wider ones, f16 and f32 in wider floats.
bool canWiden(DType narrow, DType wide);

/// Makes elements of `wide`, which is `narrow` or can hold it, as many as there
/// is room for. They do not overlap what is read.
void widen(DType narrow, DType wide, const std::byte *from,
           std::span<std::byte> to);

/// The same of those that are the last bytes of `bytes`.
void widenInPlace(DType narrow, DType wide, std::span<std::byte> bytes);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_WIDEN_H
