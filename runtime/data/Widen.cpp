#include "runtime/data/Widen.h"

#include <algorithm>
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

/// Elements that are widened at a time: they are copied first, so that what is
/// written cannot be what is read, and loops become vectors.
static constexpr size_t kBlock = 1024;

template <typename Narrow, typename Wide>
static void widenBlock(const std::byte *from, std::byte *to, size_t count) {
  Narrow narrow[kBlock];
  std::memcpy(narrow, from, count * sizeof(Narrow));
  for (size_t i = 0; i < count; ++i) {
    Wide wide = narrow[i];
    std::memcpy(to + i * sizeof(Wide), &wide, sizeof(wide));
  }
}

namespace {

struct Row {
  DTypeKind kind; ///< of the narrow type; what is unsigned gets zeros before it
  unsigned narrow, wide; ///< bytes
  void (*widen)(const std::byte *from, std::byte *to, size_t count);
};

} // namespace

static constexpr Row kRows[] = {
    {DTypeKind::Signed, 1, 2, widenBlock<int8_t, int16_t>},
    {DTypeKind::Signed, 1, 4, widenBlock<int8_t, int32_t>},
    {DTypeKind::Signed, 1, 8, widenBlock<int8_t, int64_t>},
    {DTypeKind::Signed, 2, 4, widenBlock<int16_t, int32_t>},
    {DTypeKind::Signed, 2, 8, widenBlock<int16_t, int64_t>},
    {DTypeKind::Signed, 4, 8, widenBlock<int32_t, int64_t>},
    {DTypeKind::Unsigned, 1, 2, widenBlock<uint8_t, uint16_t>},
    {DTypeKind::Unsigned, 1, 4, widenBlock<uint8_t, uint32_t>},
    {DTypeKind::Unsigned, 1, 8, widenBlock<uint8_t, uint64_t>},
    {DTypeKind::Unsigned, 2, 4, widenBlock<uint16_t, uint32_t>},
    {DTypeKind::Unsigned, 2, 8, widenBlock<uint16_t, uint64_t>},
    {DTypeKind::Unsigned, 4, 8, widenBlock<uint32_t, uint64_t>},
    {DTypeKind::Float, 2, 4, widenBlock<_Float16, float>},
    {DTypeKind::Float, 2, 8, widenBlock<_Float16, double>},
    {DTypeKind::Float, 4, 8, widenBlock<float, double>},
};

/// In blocks, from the first on.
static void widenBlocks(DType narrow, DType wide, const std::byte *source,
                        std::span<std::byte> to) {
  const DTypeTraits &from = traitsOf(narrow), &traits = traitsOf(wide);
  const Row *row = std::ranges::find_if(kRows, [&](const Row &one) {
    return one.kind == from.kind && one.narrow == from.bytes &&
           one.wide == traits.bytes;
  });
  size_t count = to.size() / traits.bytes;
  for (size_t i = 0; i < count; i += kBlock)
    row->widen(source + i * from.bytes, to.data() + i * traits.bytes,
               std::min(kBlock, count - i));
}

void runtime::widen(DType narrow, DType wide, const std::byte *from,
                    std::span<std::byte> to) {
  if (narrow == wide)
    std::memcpy(to.data(), from, to.size());
  else
    widenBlocks(narrow, wide, from, to);
}

/// What is written of a block ends at or before the next one that is read.
void runtime::widenInPlace(DType narrow, DType wide,
                           std::span<std::byte> bytes) {
  size_t count = bytes.size() / traitsOf(wide).bytes;
  size_t size = count * traitsOf(narrow).bytes;
  widenBlocks(narrow, wide, bytes.last(size).data(), bytes);
}
