#include "runtime/ranks/TreeSum.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

using namespace tcc;
using namespace tcc::runtime;

/// left[i] += right[i]
using AddTo = void (*)(std::byte *left, const std::byte *right, size_t count);

/// Adds `right` to `left`. Integers wrap: T is unsigned for them.
template <typename T>
static void addTo(std::byte *left, const std::byte *right, size_t count) {
  auto *sum = reinterpret_cast<T *>(left);
  auto *other = reinterpret_cast<const T *>(right);
  for (size_t i = 0; i < count; ++i)
    sum[i] += other[i];
}

static AddTo findSum(DType dtype) {
  switch (dtype) {
  case DType::f32:
    return addTo<float>;
  case DType::f64:
    return addTo<double>;
  case DType::i32:
    return addTo<uint32_t>;
  case DType::i64:
    return addTo<uint64_t>;
  default:
    return nullptr; // see isSummedByRanks
  }
}

Status TreeSum::add(Transport &transport, int size, const void *from, void *to,
                    size_t count, DType dtype) {
  AddTo add = findSum(dtype);
  if (!add)
    return makeError(Code::Unsupported, "ranks add up no ",
                     traitsOf(dtype).name);
  if (!std::has_single_bit(unsigned(size)))
    return makeError(Code::Usage, size, " ranks have no tree to add up in: ",
                     "expected a power of two of them");
  size_t unit = traitsOf(dtype).bytes, most = kPieceBytes / unit;
  try {
    pieces.resize(std::max(pieces.size(), std::min(count, most) * unit * size));
  } catch (const std::bad_alloc &) {
    return Status(Code::OutOfMemory, "out of memory between ranks");
  }
  for (size_t first = 0; first < count; first += most) {
    size_t piece = std::min(count - first, most), bytes = piece * unit;
    auto *own = static_cast<const std::byte *>(from) + first * unit;
    if (Status status = transport.allGather(own, pieces.data(), piece, dtype);
        !status.ok())
      return status;
    for (int half = size / 2; half > 0; half /= 2)
      for (int rank = 0; rank < half; ++rank)
        add(pieces.data() + rank * bytes, pieces.data() + (rank + half) * bytes,
            piece);
    std::memcpy(static_cast<std::byte *>(to) + first * unit, pieces.data(),
                bytes);
  }
  return Status();
}
