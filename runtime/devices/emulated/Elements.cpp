#include "runtime/devices/emulated/Elements.h"

#include <bit>
#include <cmath>
#include <cstring>

using namespace tcc;
using namespace tcc::emulated;

size_t emulated::bytesOf(DType dtype) {
  return dtype == DType::f64 ? 8 : dtype == DType::f32 ? 4 : 2;
}

template <typename T> static T loadAs(const void *place) {
  T value;
  std::memcpy(&value, place, sizeof(value));
  return value;
}

double emulated::load(const void *base, int64_t index, DType dtype) {
  const char *place = static_cast<const char *>(base) + index * bytesOf(dtype);
  switch (dtype) {
  case DType::f32:
    return loadAs<float>(place);
  case DType::f64:
    return loadAs<double>(place);
  case DType::f16:
    return static_cast<float>(loadAs<_Float16>(place));
  default:
    return std::bit_cast<float>(uint32_t(loadAs<uint16_t>(place)) << 16);
  }
}

double emulated::roundToTf32(double value) {
  constexpr uint32_t kDropped = (1 << 13) - 1;
  uint32_t bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  if (!std::isfinite(value))
    return value;
  bits += (kDropped >> 1) + (bits >> 13 & 1);
  return std::bit_cast<float>(bits & ~kDropped);
}

static uint16_t toBF16(float value) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value))
    return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void emulated::store(void *base, int64_t index, DType dtype, double value) {
  char *place = static_cast<char *>(base) + index * bytesOf(dtype);
  float narrow = static_cast<float>(value);
  auto half = static_cast<_Float16>(narrow);
  uint16_t bits = toBF16(narrow);
  const void *from = dtype == DType::f64   ? static_cast<const void *>(&value)
                     : dtype == DType::f32 ? static_cast<const void *>(&narrow)
                     : dtype == DType::f16 ? static_cast<const void *>(&half)
                                           : &bits;
  std::memcpy(place, from, bytesOf(dtype));
}
