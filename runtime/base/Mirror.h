//===- Mirror.h - Enums that repeat others ----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_MIRROR_H
#define TCC_RUNTIME_BASE_MIRROR_H

#include <cstddef>
#include <cstdint>
#include <utility>

namespace tcc {

/// Whether the enumerators of each pair have one value, so that the one enum
/// may be cast to the other; pairs are in ascending order. `last` are the last
/// values of enums without gaps from 0: there is a pair for each of theirs.
template <typename A, typename B, size_t count, typename... Last>
constexpr bool isMirror(const std::pair<A, B> (&pairs)[count], Last... last) {
  int64_t before = -1;
  for (auto [a, b] : pairs) {
    auto value = static_cast<int64_t>(a);
    if (value != static_cast<int64_t>(b) || value <= before)
      return false;
    before = value;
  }
  return ((static_cast<size_t>(last) == count - 1) && ...);
}

} // namespace tcc

#endif // TCC_RUNTIME_BASE_MIRROR_H
