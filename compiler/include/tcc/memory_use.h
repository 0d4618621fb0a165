//===- tcc/memory_use.h - What lies in an arena, and when -------*- C++ -*-===//
#ifndef TCC_MEMORY_USE_H
#define TCC_MEMORY_USE_H

#include <cstdint>
#include <string>
#include <vector>

namespace tcc {

/// A buffer of the arena. Positions are two a command, its begin and its end,
/// so that what is within a loop lies between those of the loop.
struct TensorUse {
  std::string node; ///< of the model, that the first command computes
  int64_t bytes = 0;
  int64_t begin = 0, end = 0; ///< first and last position, both inclusive
};

/// What an entry point has in its arena.
struct ArenaUse {
  std::string entry;
  int64_t bytes = 0; ///< of the arena
  int64_t positions = 0;
  std::vector<TensorUse> tensors;
};

} // namespace tcc

#endif // TCC_MEMORY_USE_H
