#include "compiler/codegen/cpu/tile/Blocking.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <numeric>

using namespace tcc::cpu;

namespace tcc::cpu {

int64_t Blocking::getRowUnit() const {
  return isOfUnits ? std::lcm(rows, kRegisterRows) : rows;
}

int64_t Blocking::getTileRows() const {
  return isOfUnits ? llvm::alignTo(m, kRegisterTileRows) : m;
}

/// Blocks of like depths.
static void splitDepth(Blocking &block, int64_t k, int64_t most) {
  // Half as much again costs less than sums that come and go.
  block.isWholeDepth = k <= most + most / 2;
  int64_t blocks = block.isWholeDepth ? 1 : llvm::divideCeil(k, most);
  block.k = std::max<int64_t>(1, llvm::divideCeil(k, blocks));
  if (!block.isWholeDepth)
    block.k = llvm::alignTo(block.k, block.getDepthUnit());
}

/// Tasks of a product that are enough for several threads.
static constexpr int64_t kTasksWanted = 16;

/// Halves the one block of a product that is worth two threads: its columns or,
/// of a single panel, its rows. Nothing is packed more often for that; a single
/// thread reads one operand twice.
static void splitLoneBlock(Blocking &block, const ContractionSizes &sizes) {
  constexpr double manyProducts = 1 << 22;
  if (sizes.batch != 1 || !sizes.m || !sizes.n || !sizes.k ||
      *sizes.m > block.m || *sizes.n > block.n ||
      double(*sizes.m) * double(*sizes.n) * double(*sizes.k) < manyProducts)
    return;
  if (!sizes.packsLhs && block.n > kPanelColumns)
    block.n = llvm::alignTo(block.n / 2, kPanelColumns);
  else if (!sizes.packsRhs && block.m >= 4 * block.getRowUnit())
    block.m = llvm::alignTo(block.m / 2, block.getRowUnit());
}

/// Blocks of k keep a panel of columns and a block of rows in the second-level
/// cache; wide blocks of columns read the left operand less often from further
/// away.
Blocking chooseBlocking(const ContractionSizes &sizes) {
  auto fit = [](std::optional<int64_t> size, int64_t limit, int64_t unit) {
    int64_t whole = std::max<int64_t>(1, size.value_or(limit));
    return std::min<int64_t>(limit, llvm::alignTo(whole, unit));
  };
  Blocking block;
  // Few columns: more rows make up for the vectors that a tile lacks.
  if (sizes.n && *sizes.n <= narrowColumns)
    block.rows = 2 * panelRows;
  block.isOfUnits = sizes.packing.group > 1;
  const int64_t rowUnit = block.getRowUnit();
  // The more rows, the less is copied twice.
  if (sizes.sharesRows && sizes.m)
    block.m = std::clamp<int64_t>(*sizes.m / kTasksWanted, block.m,
                                  kSharedRows * block.m);
  // Blocks of like heights, so that tasks are alike.
  if (sizes.m && *sizes.m > 0)
    block.m = llvm::divideCeil(*sizes.m, llvm::divideCeil(*sizes.m, block.m));
  block.m = fit(sizes.m, llvm::alignTo(block.m, rowUnit), rowUnit);
  block.n = fit(sizes.n, block.n, kPanelColumns);
  if (sizes.k)
    splitDepth(block, *sizes.k, block.k);
  // Enough tasks for several threads, as long as blocks stay worth packing.
  constexpr int64_t blockElements = 1 << 17;
  auto tasks = [&] {
    if (!sizes.batch || !sizes.m || !sizes.n)
      return kTasksWanted;
    return *sizes.batch * int64_t(llvm::divideCeil(*sizes.m, block.m) *
                                  llvm::divideCeil(*sizes.n, block.n));
  };
  while (block.n > 4 * kPanelColumns && block.n * block.k > blockElements)
    block.n -= kPanelColumns;
  while (block.n > 2 * kPanelColumns && tasks() < kTasksWanted)
    block.n -= kPanelColumns;
  splitLoneBlock(block, sizes);
  return block;
}

/// How tasks of one product with a long k share what they pack, by the sizes of
/// their blocks.
static void shareDeepBlocks(Blocking &block, int64_t m, int64_t n) {
  constexpr int64_t maxSums = 1 << 18;
  bool hasAllRows = block.m >= m;
  block.packsByPanel = hasAllRows || !block.isWholeDepth;
  if (hasAllRows)
    block.joinedTasks =
        std::clamp<int64_t>(maxSums / (block.m * block.n), 1,
                            std::max<int64_t>(1, llvm::divideCeil(n, block.n)));
}

/// A packed panel pays off by the rows that it is multiplied with, and packed
/// rows by the panels: tasks have all rows, up to many, and few panels. Workers
/// join what they get of them, up to so many sums. The packed rows stay in the
/// second-level cache.
Blocking chooseDeepBlocking(int64_t m, int64_t n, int64_t k, bool packsRows,
                            graph::Packing packing) {
  constexpr int64_t tasksWanted = 4, maxPanels = 8, maxDepth = 256;
  constexpr int64_t maxRows = 528;
  Blocking block;
  block.isDeep = true;
  block.isOfUnits = packing.group > 1;
  // Panels of twice as many rows are packed with as many vectors.
  if (packsRows || n <= narrowColumns)
    block.rows = 2 * panelRows;
  m = std::max<int64_t>(m, 1);
  int64_t rowBlocks = llvm::divideCeil(m, maxRows);
  block.m = llvm::alignTo(llvm::divideCeil(m, rowBlocks), block.getRowUnit());
  int64_t all = std::max<int64_t>(1, llvm::divideCeil(n, kPanelColumns));
  int64_t panels = llvm::divideCeil(all, llvm::divideCeil(all, maxPanels));
  while (panels > 1 &&
         rowBlocks * int64_t(llvm::divideCeil(all, panels)) < tasksWanted)
    panels = llvm::divideCeil(panels, 2);
  block.n = panels * kPanelColumns;
  splitDepth(block, k, maxDepth);
  shareDeepBlocks(block, m, n);
  return block;
}

std::optional<BlockSizes> readBlockSizes(llvm::ArrayRef<int64_t> list) {
  if (list.size() != 3 && list.size() != 4)
    return std::nullopt;
  return BlockSizes{list[0], list[1], list[2],
                    list.size() == 4 ? list[3] : kUnroll};
}

std::optional<Blocking> resizeBlocks(Blocking blocking, const BlockSizes &to,
                                     const ContractionSizes &sizes) {
  constexpr int64_t mostElements = 1 << 20, kMostUnroll = 16;
  auto fits = [](int64_t size, int64_t unit, std::optional<int64_t> extent) {
    int64_t most = mostElements;
    if (extent)
      most = llvm::alignTo(std::clamp<int64_t>(*extent, 1, most), unit);
    return size > 0 && size <= most && size % unit == 0;
  };
  bool isWhole = sizes.k && to.k == std::max<int64_t>(*sizes.k, 1);
  if (!fits(to.m, blocking.getRowUnit(), sizes.m) ||
      !fits(to.n, kPanelColumns, sizes.n) ||
      !fits(to.k, isWhole ? 1 : blocking.getDepthUnit(), sizes.k) ||
      to.unroll < 1 || to.unroll > kMostUnroll ||
      std::max({to.m * to.n, to.m * to.k, to.n * to.k}) > mostElements)
    return std::nullopt;
  blocking.m = to.m, blocking.n = to.n, blocking.k = to.k;
  blocking.unroll = to.unroll;
  blocking.isWholeDepth = sizes.k && to.k >= *sizes.k;
  if (blocking.isDeep) {
    blocking.joinedTasks = 1;
    shareDeepBlocks(blocking, *sizes.m, *sizes.n);
  }
  return blocking;
}

/// One size is changed before two are: columns, which decide how many tasks
/// there are and how much of the right operand they keep, then rows, then k;
/// how far a tile is unrolled matters least.
llvm::SmallVector<BlockSizes> listBlockSizes(const Blocking &blocking,
                                             const ContractionSizes &sizes) {
  BlockSizes own = blocking.getSizes();
  llvm::SmallVector<BlockSizes> found;
  auto add = [&](int64_t m, int64_t n, int64_t k) {
    auto fit = [](int64_t size, int64_t unit, std::optional<int64_t> extent) {
      if (extent)
        size = std::min(size, std::max<int64_t>(*extent, 1));
      return int64_t(llvm::alignTo(std::max<int64_t>(size, 1), unit));
    };
    int64_t depthUnit = sizes.k && k >= *sizes.k ? 1 : blocking.getDepthUnit();
    BlockSizes made{fit(m, blocking.getRowUnit(), sizes.m),
                    fit(n, kPanelColumns, sizes.n), fit(k, depthUnit, sizes.k)};
    if (made != own && !llvm::is_contained(found, made) &&
        resizeBlocks(blocking, made, sizes))
      found.push_back(made);
  };
  int64_t whole = sizes.k.value_or(own.k);
  for (int64_t n : {own.n / 2, own.n * 2, own.n / 4})
    add(own.m, n, own.k);
  for (int64_t m : {own.m / 2, own.m * 2})
    add(m, own.n, own.k);
  for (int64_t k : {whole, own.k / 2, own.k * 2})
    add(own.m, own.n, k);
  for (int64_t k : {own.k, whole, own.k / 2})
    for (int64_t m : {own.m / 2, own.m, own.m * 2})
      for (int64_t n : {own.n / 2, own.n, own.n * 2})
        add(m, n, k);
  // Tiles of few sums are not unrolled.
  constexpr int64_t kVector = 16;
  if (sizes.m.value_or(panelRows) < panelRows ||
      sizes.n.value_or(kPanelColumns) <= kVector)
    return found;
  for (int64_t unroll : {own.unroll * 2, own.unroll / 2})
    if (BlockSizes other{own.m, own.n, own.k, unroll};
        resizeBlocks(blocking, other, sizes))
      found.push_back(other);
  return found;
}

} // namespace tcc::cpu
