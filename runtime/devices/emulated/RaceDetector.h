//===- RaceDetector.h - Accesses that nothing orders ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_RACEDETECTOR_H
#define TCC_RUNTIME_DEVICES_EMULATED_RACEDETECTOR_H

#include "runtime/devices/emulated/EmulatedKernel.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace tcc::emulated {

/// Remembers who has accessed what in a launch. Two accesses of different
/// threads to the same byte are a race if one of them is a write, not both are
/// atomic, and no barrier of the block or the warp lies between. Threads of
/// different blocks are never ordered. Of the readers of a byte two of a block
/// are remembered, so that races of warps with several readers may be missed;
/// none is reported wrongly.
class RaceDetector {
public:
  /// The earlier one of two accesses.
  struct Conflict {
    uint32_t block, thread;
    bool isWrite;
  };

  void beginLaunch();
  /// `shared` is a memory of its own in each block.
  void beginBlock(uint32_t index, std::span<const std::byte> shared);
  /// All threads of the block wait for each other.
  void syncBlock() { blockSync = ++clock; }
  /// All threads of a warp that are not done wait for each other.
  void syncWarp(uint32_t warp) { warpSyncs[warp] = ++clock; }

  /// An access of the current block; what it races with, if anything.
  std::optional<Conflict> access(uint32_t thread, const void *address,
                                 uint32_t bytes, AccessKind kind);

private:
  struct Access {
    uint32_t time = 0; ///< of the clock; 0 is no access
    uint32_t block = 0;
    uint16_t thread = 0;
    AccessKind kind = AccessKind::read;
  };
  /// What happened to the bytes of a cell.
  struct Cell {
    Access write, read;
    Access otherRead;   ///< of another thread than `read`, in the same block
    Access earlierRead; ///< of an earlier block
  };
  /// Shadow of kPageBytes bytes, in cells of 1 << shift bytes.
  struct Page {
    unsigned shift = 2;
    std::vector<Cell> cells;
  };

  Page &findPage(uintptr_t number);
  static void refine(Page &page, unsigned shift);
  bool isShared(uintptr_t address) const;
  /// True if nothing orders them, in memory that exists since a time.
  bool isUnordered(const Access &earlier, const Access &now,
                   uint32_t since) const;
  const Access *findRace(const Cell &cell, const Access &now,
                         uint32_t since) const;
  void record(Cell &cell, const Access &now) const;

  uint32_t clock = 0;
  uint32_t launchStart = 0, blockStart = 0, blockSync = 0;
  uint32_t block = 0;
  std::array<uint32_t, 32> warpSyncs = {}; ///< of the warps of the block
  std::span<const std::byte> shared;
  std::unordered_map<uintptr_t, Page> pages;
  /// Pages found lately, by the last bits of their numbers.
  struct Found {
    uintptr_t number;
    Page *page = nullptr;
  };
  std::array<Found, 64> found;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_RACEDETECTOR_H
