#include "runtime/devices/emulated/RaceDetector.h"

#include <algorithm>
#include <bit>

using namespace tcc::emulated;

static constexpr unsigned kPageShift = 12;
static constexpr uintptr_t kPageBytes = uintptr_t(1) << kPageShift;
/// Shadows of more pages are forgotten between launches.
static constexpr size_t kMaxPages = 4096;

void RaceDetector::beginLaunch() {
  if (pages.size() > kMaxPages || clock > UINT32_MAX / 2) {
    pages.clear();
    found.fill({});
    clock = 0;
  }
  launchStart = ++clock;
}

void RaceDetector::beginBlock(uint32_t index,
                              std::span<const std::byte> memory) {
  block = index;
  shared = memory;
  blockStart = blockSync = ++clock;
  warpSyncs.fill(clock);
}

RaceDetector::Page &RaceDetector::findPage(uintptr_t number) {
  Found &entry = found[number % found.size()];
  if (!entry.page || entry.number != number) {
    Page &page = pages[number];
    if (page.cells.empty())
      page.cells.resize(kPageBytes >> page.shift);
    entry = {number, &page};
  }
  return *entry.page;
}

/// So far all accesses were of whole cells.
void RaceDetector::refine(Page &page, unsigned shift) {
  std::vector<Cell> cells(kPageBytes >> shift);
  for (size_t i = 0; i < cells.size(); ++i)
    cells[i] = page.cells[i >> (page.shift - shift)];
  page.cells = std::move(cells);
  page.shift = shift;
}

bool RaceDetector::isShared(uintptr_t address) const {
  return address - reinterpret_cast<uintptr_t>(shared.data()) < shared.size();
}

bool RaceDetector::isUnordered(const Access &earlier, const Access &now,
                               uint32_t since) const {
  if (earlier.time < since)
    return false;
  if (earlier.time < blockStart)
    return true;
  uint32_t warp = now.thread / kWarpSize;
  bool isWarp = earlier.thread / kWarpSize == warp;
  return earlier.thread != now.thread && earlier.time >= blockSync &&
         !(isWarp && earlier.time < warpSyncs[warp]);
}

const RaceDetector::Access *RaceDetector::findRace(const Cell &cell,
                                                   const Access &now,
                                                   uint32_t since) const {
  auto races = [&](const Access &earlier) {
    bool areAtomic =
        earlier.kind == AccessKind::atomic && now.kind == AccessKind::atomic;
    return !areAtomic && isUnordered(earlier, now, since);
  };
  if (races(cell.write))
    return &cell.write;
  if (now.kind == AccessKind::read)
    return nullptr;
  for (const Access *read : {&cell.read, &cell.otherRead, &cell.earlierRead})
    if (races(*read))
      return read;
  return nullptr;
}

void RaceDetector::record(Cell &cell, const Access &now) const {
  if (now.kind != AccessKind::read) {
    cell.write = now;
    return;
  }
  if (cell.read.time < blockStart) {
    cell.earlierRead = cell.read;
    cell.otherRead = {};
  } else if (cell.read.thread != now.thread) {
    cell.otherRead = cell.read;
  }
  cell.read = now;
}

std::optional<RaceDetector::Conflict> RaceDetector::access(uint32_t thread,
                                                           const void *address,
                                                           uint32_t bytes,
                                                           AccessKind kind) {
  auto first = reinterpret_cast<uintptr_t>(address);
  uintptr_t end = first + bytes;
  unsigned shift = std::min(2, std::countr_zero(first | bytes));
  uint32_t since = isShared(first) ? blockStart : launchStart;
  Access now{clock, block, uint16_t(thread), kind};
  while (first < end) {
    Page &page = findPage(first >> kPageShift);
    if (shift < page.shift)
      refine(page, shift);
    uintptr_t offset = first & (kPageBytes - 1);
    uintptr_t size = std::min(end - first, kPageBytes - offset);
    uintptr_t lastCell = (offset + size - 1) >> page.shift;
    for (uintptr_t i = offset >> page.shift; i <= lastCell; ++i) {
      if (const Access *other = findRace(page.cells[i], now, since))
        return Conflict{other->block, other->thread,
                        other->kind != AccessKind::read};
      record(page.cells[i], now);
    }
    first += size;
  }
  return std::nullopt;
}
