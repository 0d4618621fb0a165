//===- DType.h - Element types ----------------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_DTYPE_H
#define TCC_RUNTIME_PACKAGE_DTYPE_H

#include "runtime/package/Program_generated.h"

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

namespace tcc::runtime {

using format::DType;

enum class DTypeKind { Float, Signed, Unsigned, Boolean };

/// What the runtime knows of an element type.
struct DTypeTraits {
  DType dtype;
  std::string_view name;        ///< ours and safetensors' in lower case
  std::string_view numpy;       ///< of a little-endian npy; bf16 has none
  std::string_view safetensors; ///< of a safetensors header
  size_t bytes;
  DTypeKind kind;
};

/// False for a value read from a file that is no DType.
bool isDType(DType dtype);
/// Requires isDType.
const DTypeTraits &traitsOf(DType dtype);

/// Whether ranks add up elements of the type. Sums of narrow floats would be
/// rounded once for each rank.
bool isSummedByRanks(DType dtype);

/// Bytes of a dense tensor; nothing if an extent is negative or they overflow.
std::optional<uint64_t> bytesOf(DType dtype, std::span<const int64_t> shape);

/// An element as a number; NaN of types that no setting, field of the step or
/// metric has.
double readScalar(DType dtype, const std::byte *element);

std::optional<DType> dtypeOfNumpy(std::string_view name);
std::optional<DType> dtypeOfSafetensors(std::string_view name);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_DTYPE_H
