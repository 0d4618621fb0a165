//===- NearestWord.h - What was probably meant ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_NEARESTWORD_H
#define TCC_RUNTIME_BASE_NEARESTWORD_H

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace tcc::runtime {

/// Levenshtein's distance, one row at a time.
inline size_t editDistance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j)
    row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] != b[j - 1]);
      diagonal = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

/// The candidate that differs from `word` in the fewest letters; empty if none
/// is near.
inline std::string nearestWord(std::string_view word,
                               const std::vector<std::string> &candidates) {
  std::string nearest;
  // Half of the letters wrong is no longer a typing error.
  size_t best = std::max<size_t>(2, word.size() / 2);
  for (const std::string &candidate : candidates) {
    size_t distance = editDistance(word, candidate);
    if (distance >= best)
      continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_NEARESTWORD_H
