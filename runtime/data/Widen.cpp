#include "runtime/data/Widen.h"

#include <array>
#include <bit>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

static bool isInteger(DTypeKind kind) {
  return kind == DTypeKind::Signed || kind == DTypeKind::Unsigned;
}

bool runtime::canWiden(DType narrow, DType wide) {
  const DTypeTraits &to = traitsOf(wide), &from = traitsOf(narrow);
  // No file of arrays that numpy writes has bf16.
  if (to.kind == DTypeKind::Float && from.kind == DTypeKind::Float)
    return to.bytes > from.bytes && narrow != DType::bf16;
  bool keepsSign = to.kind == DTypeKind::Signed || to.kind == from.kind;
  return isInteger(to.kind) && isInteger(from.kind) && keepsSign &&
         to.bytes > from.bytes;
}

/// Little-endian: the low bytes come first.
static void widenInteger(std::span<const std::byte> from,
                         std::span<std::byte> to, bool isSigned) {
  std::memcpy(to.data(), from.data(), from.size());
  bool isNegative = isSigned && (from.back() & std::byte(0x80)) != std::byte(0);
  std::memset(to.data() + from.size(), isNegative ? 0xff : 0,
              to.size() - from.size());
}

static float readFloat(DType dtype, const std::byte *from) {
  if (dtype == DType::f32) {
    float value;
    std::memcpy(&value, from, sizeof(value));
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, from, sizeof(bits));
  return std::bit_cast<_Float16>(bits);
}

static void widenFloat(DType dtype, std::span<const std::byte> from,
                       std::span<std::byte> to) {
  float value = readFloat(dtype, from.data());
  double wide = value;
  bool isDouble = to.size() == sizeof(wide);
  std::memcpy(to.data(), isDouble ? static_cast<void *>(&wide) : &value,
              to.size());
}

void runtime::widenInPlace(DType narrow, DType wide,
                           std::span<std::byte> bytes) {
  const DTypeTraits &from = traitsOf(narrow), &to = traitsOf(wide);
  size_t count = bytes.size() / to.bytes;
  std::span<std::byte> last = bytes.last(count * from.bytes);
  // What is written of an element ends at or before the next one that is read.
  for (size_t i = 0; i < count; ++i) {
    std::array<std::byte, 8> element;
    std::memcpy(element.data(), last.data() + i * from.bytes, from.bytes);
    auto source = std::span<const std::byte>(element).first(from.bytes);
    auto target = bytes.subspan(i * to.bytes, to.bytes);
    if (from.kind == DTypeKind::Float)
      widenFloat(narrow, source, target);
    else
      widenInteger(source, target, from.kind == DTypeKind::Signed);
  }
}
