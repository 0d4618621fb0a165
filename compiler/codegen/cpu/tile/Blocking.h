//===- Blocking.h - Sizes of the blocks of matrix kernels -------*- C++ -*-===//
#ifndef TCC_COMPILER_CODEGEN_CPU_TILE_BLOCKING_H
#define TCC_COMPILER_CODEGEN_CPU_TILE_BLOCKING_H

#include "dialects/graph/Panels.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace tcc::cpu {

inline constexpr int64_t panelRows = 6; // twice as many of narrow products
using graph::kPanelColumns;
inline constexpr int64_t narrowColumns = 32;
/// Rows of a register for tiles and of a tile of two of them, and units in k of
/// an instruction (TileRegisters.h).
inline constexpr int64_t kRegisterRows = 16, kRegisterTileRows = 32;
inline constexpr int64_t kRegisterUnits = 16;
/// Blocks of rows that share what a task copies have up to so many times more.
inline constexpr int64_t kSharedRows = 3;

/// What is known of the sizes when the kernel is planned.
struct ContractionSizes {
  std::optional<int64_t> batch, m, n, k;
  /// Operands that each task packs: tasks that share a block of one pack it
  /// again.
  bool packsLhs = true, packsRhs = true;
  /// Neighbouring rows share what a task copies of the left operand.
  bool sharesRows = false;
  graph::Packing packing = {}; ///< k is counted in its units
};

/// The k that a tile multiplies in an iteration, if it has enough registers.
inline constexpr int64_t kUnroll = 4;

/// What may be chosen otherwise: the most rows, columns and k of a block, and
/// the k of an iteration.
struct BlockSizes {
  int64_t m, n, k, unroll = kUnroll;
  auto operator<=>(const BlockSizes &) const = default;

  /// The usual unrolling is not said.
  llvm::SmallVector<int64_t> list() const {
    llvm::SmallVector<int64_t> sizes = {m, n, k};
    if (unroll != kUnroll)
      sizes.push_back(unroll);
    return sizes;
  }
};

/// What `list` gave; nullopt of anything else.
std::optional<BlockSizes> readBlockSizes(llvm::ArrayRef<int64_t> list);

/// Sizes of the blocks that a task works through: whole panels of rows and
/// columns, and so many k at a time.
struct Blocking {
  int64_t rows = panelRows; // of a tile, and of a panel of the left operand
  int64_t m = 132, n = 512, k = 512;
  bool isWholeDepth = false; // one block of k is all there is
  /// Tasks of neighbouring columns that a worker takes together, if it gets
  /// them together: they share the packed left operand. More than one only
  /// where a block has all rows and there is one product.
  int64_t joinedTasks = 1;
  /// Panels of the right operand are packed one by one, just before they are
  /// used: no other task has a use for them.
  bool packsByPanel = false;
  bool isDeep = false; // of chooseDeepBlocking
  int64_t unroll = kUnroll;
  /// Units may be multiplied in registers for tiles: blocks suit these, too.
  bool isOfUnits = false;

  int64_t getTileElements() const { return rows * kPanelColumns; }
  /// What the rows and, of several blocks, the k of a block are multiples of.
  int64_t getRowUnit() const;
  int64_t getDepthUnit() const { return isOfUnits ? kRegisterUnits : 1; }
  /// Rows of a block with those that fill up its last tile.
  int64_t getTileRows() const;
  BlockSizes getSizes() const { return {m, n, k, unroll}; }
};

/// Blocks that keep a task's operands in the caches and leave enough tasks for
/// several threads.
Blocking chooseBlocking(const ContractionSizes &sizes);

/// The same for one product with a long k, of which each task packs both
/// operands.
Blocking chooseDeepBlocking(int64_t m, int64_t n, int64_t k, bool packsRows,
                            graph::Packing packing);

/// `blocking`, which was chosen for `sizes`, with blocks of other sizes;
/// nullopt if these are no whole panels, larger than the product, or too large
/// for a worker's scratch.
std::optional<Blocking> resizeBlocks(Blocking blocking, const BlockSizes &to,
                                     const ContractionSizes &sizes);

/// Other sizes of blocks for which that works, those first that are likely to
/// be the best where the chosen ones are not.
llvm::SmallVector<BlockSizes> listBlockSizes(const Blocking &blocking,
                                             const ContractionSizes &sizes);

} // namespace tcc::cpu

#endif // TCC_COMPILER_CODEGEN_CPU_TILE_BLOCKING_H
