//===- Divisors.h - How many can share something ----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_DIVISORS_H
#define TCC_RUNTIME_BASE_DIVISORS_H

#include <algorithm>
#include <cstdint>
#include <string>

namespace tcc::runtime {

/// The divisors of `number` up to 1024, as a sentence has them: "1, 2, 4".
inline std::string listDivisors(int64_t number) {
  constexpr int64_t kMost = 1024;
  std::string text;
  for (int64_t count = 1; count <= std::min(number, kMost); ++count)
    if (number % count == 0)
      text += (text.empty() ? "" : ", ") + std::to_string(count);
  return text;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_DIVISORS_H
