#include "runtime/package/DType.h"

#include <cmath>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

/// Indexed by DType.
static constexpr DTypeTraits kTraits[] = {
    {DType::f32, "f32", "<f4", "F32", 4, DTypeKind::Float},
    {DType::f16, "f16", "<f2", "F16", 2, DTypeKind::Float},
    {DType::bf16, "bf16", "", "BF16", 2, DTypeKind::Float},
    {DType::f64, "f64", "<f8", "F64", 8, DTypeKind::Float},
    {DType::i8, "i8", "|i1", "I8", 1, DTypeKind::Signed},
    {DType::i16, "i16", "<i2", "I16", 2, DTypeKind::Signed},
    {DType::i32, "i32", "<i4", "I32", 4, DTypeKind::Signed},
    {DType::i64, "i64", "<i8", "I64", 8, DTypeKind::Signed},
    {DType::u8, "u8", "|u1", "U8", 1, DTypeKind::Unsigned},
    {DType::u16, "u16", "<u2", "U16", 2, DTypeKind::Unsigned},
    {DType::u32, "u32", "<u4", "U32", 4, DTypeKind::Unsigned},
    {DType::u64, "u64", "<u8", "U64", 8, DTypeKind::Unsigned},
    {DType::boolean, "bool", "|b1", "BOOL", 1, DTypeKind::Boolean},
};
static_assert(std::size(kTraits) == static_cast<size_t>(DType::MAX) + 1);

bool runtime::isDType(DType dtype) { return dtype <= DType::MAX; }

const DTypeTraits &runtime::traitsOf(DType dtype) {
  return kTraits[static_cast<size_t>(dtype)];
}

bool runtime::isSummedByRanks(DType dtype) {
  return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::i32 ||
         dtype == DType::i64;
}

std::optional<uint64_t> runtime::bytesOf(DType dtype,
                                         std::span<const int64_t> shape) {
  uint64_t bytes = traitsOf(dtype).bytes;
  for (int64_t dim : shape)
    if (dim < 0 ||
        __builtin_mul_overflow(bytes, static_cast<uint64_t>(dim), &bytes))
      return std::nullopt;
  return bytes;
}

std::optional<DType> runtime::dtypeOfNumpy(std::string_view name) {
  for (const DTypeTraits &traits : kTraits)
    if (!name.empty() && traits.numpy == name)
      return traits.dtype;
  return std::nullopt;
}

std::optional<DType> runtime::dtypeOfSafetensors(std::string_view name) {
  for (const DTypeTraits &traits : kTraits)
    if (traits.safetensors == name)
      return traits.dtype;
  return std::nullopt;
}

double runtime::readScalar(DType dtype, const std::byte *data) {
  auto as = [&](auto value) {
    std::memcpy(&value, data, sizeof(value));
    return static_cast<double>(value);
  };
  switch (dtype) {
  case DType::f64:
    return as(double());
  case DType::f32:
    return as(float());
  case DType::i64:
    return as(int64_t());
  case DType::i32:
    return as(int32_t());
  case DType::boolean:
  case DType::u8:
    return as(uint8_t());
  default:
    return NAN;
  }
}
