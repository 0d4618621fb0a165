#include "tools/tcc-run/Elements.h"

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static uint64_t loadBits(DType dtype, const void *data, size_t index) {
  size_t bytes = traitsOf(dtype).bytes;
  uint64_t bits = 0;
  std::memcpy(&bits, static_cast<const char *>(data) + index * bytes, bytes);
  return bits;
}

static int64_t signExtend(uint64_t bits, size_t bytes) {
  unsigned unused = 64 - 8 * bytes;
  return static_cast<int64_t>(bits << unused) >> unused;
}

/// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits.
static double halfToDouble(uint16_t bits) {
  int exponent = bits >> 10 & 0x1f;
  int fraction = bits & 0x3ff;
  double magnitude = std::ldexp(fraction, -24);
  if (exponent == 0x1f)
    magnitude = fraction ? NAN : INFINITY;
  else if (exponent > 0)
    magnitude = std::ldexp(0x400 + fraction, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

double tools::loadElement(DType dtype, const void *data, size_t index) {
  uint64_t bits = loadBits(dtype, data, index);
  const DTypeTraits &traits = traitsOf(dtype);
  if (traits.kind == DTypeKind::Signed)
    return static_cast<double>(signExtend(bits, traits.bytes));
  if (traits.kind != DTypeKind::Float)
    return static_cast<double>(bits);
  if (dtype == DType::f16)
    return halfToDouble(bits);
  if (dtype == DType::f64) {
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  uint32_t single = dtype == DType::bf16 ? bits << 16 : bits;
  float value;
  std::memcpy(&value, &single, sizeof(value));
  return value;
}

std::string tools::formatElement(DType dtype, const void *data, size_t index) {
  const DTypeTraits &traits = traitsOf(dtype);
  uint64_t bits = loadBits(dtype, data, index);
  if (traits.kind == DTypeKind::Signed)
    return std::to_string(signExtend(bits, traits.bytes));
  if (traits.kind == DTypeKind::Boolean)
    return bits ? "true" : "false";
  if (traits.kind == DTypeKind::Unsigned)
    return std::to_string(bits);
  double value = loadElement(dtype, data, index);
  char text[64];
  std::to_chars_result end =
      dtype == DType::f64
          ? std::to_chars(text, text + sizeof(text), value)
          : std::to_chars(text, text + sizeof(text), static_cast<float>(value));
  return std::string(text, end.ptr);
}
