//===- tcc/memory_use.h - What lies in an arena, and its price --*- C++ -*-===//
#ifndef TCC_MEMORY_USE_H
#define TCC_MEMORY_USE_H

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tcc {

/// A buffer of the arena. Positions are two a command, its begin and its end,
/// so that what is within a loop lies between those of the loop.
struct TensorUse {
  std::string node;   ///< of the model, that the first command computes
  std::string module; ///< the path of that node's module; empty: not known
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

/// Bytes that are live at the peak of an entry point, and the time that the
/// cost model predicts for it.
struct PeakCost {
  int64_t bytes = 0;
  double microseconds = 0;
};

/// A kernel, or a part of one, that a program runs again.
struct Recomputation {
  std::string node; ///< of the model
  std::string what; ///< for the user: how much of the kernel
  int64_t bytes = 0;
  double microseconds = 0; ///< predicted
};

/// What a budget costs one entry point.
struct EntryRecompute {
  std::string entry;
  /// Least time first; the last has the fewest bytes that any choice was
  /// counted with.
  std::vector<PeakCost> possible;
  double keptMicroseconds = 0; ///< with all values kept
  std::optional<PeakCost> chosen;
  std::vector<Recomputation> recomputed; ///< by what was chosen, in order
  /// Where no choice fits: bytes that the smallest plan needs, and the nodes
  /// with most of them.
  int64_t neededBytes = 0;
  std::string inTheWay;
};

/// What ranks exchange at once in an update, and the time that the cost model
/// predicts for what is computed between its start and the first use of it.
struct MessageUse {
  std::string of; ///< a node of the model, or variables
  int64_t bytes = 0;
  double hidingMicroseconds = 0;
};

} // namespace tcc

#endif // TCC_MEMORY_USE_H
