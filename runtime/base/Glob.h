//===- Glob.h - Patterns over names -----------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_GLOB_H
#define TCC_RUNTIME_BASE_GLOB_H

#include <string_view>

namespace tcc::runtime {

/// True if `glob` describes all of `text`: `*` stands for any characters, `?`
/// for one.
inline bool matchesGlob(std::string_view glob, std::string_view text) {
  // On a mismatch only the last star is tried again with one character more:
  // what comes before it has matched as early as it can.
  size_t star = std::string_view::npos, resume = 0, i = 0, j = 0;
  while (j < text.size()) {
    if (i < glob.size() && glob[i] == '*') {
      star = i++;
      resume = j;
    } else if (i < glob.size() && (glob[i] == '?' || glob[i] == text[j])) {
      ++i, ++j;
    } else if (star != std::string_view::npos) {
      i = star + 1;
      j = ++resume;
    } else {
      return false;
    }
  }
  return glob.find_first_not_of('*', i) == std::string_view::npos;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_GLOB_H
