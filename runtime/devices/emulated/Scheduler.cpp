#include "runtime/devices/emulated/Scheduler.h"

#include <algorithm>
#include <numeric>

using namespace tcc::emulated;

/// SplitMix64 (G. Steele, D. Lea and C. Flood, 2014).
uint64_t Scheduler::random() {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

std::vector<uint32_t> Scheduler::arrange(uint32_t size) {
  std::vector<uint32_t> indices(size);
  std::iota(indices.begin(), indices.end(), 0);
  if (order == Order::reverse)
    std::reverse(indices.begin(), indices.end());
  if (order == Order::random)
    for (uint32_t i = size; i > 1; --i)
      std::swap(indices[i - 1], indices[random() % i]);
  return indices;
}

void Scheduler::begin(uint32_t threadCount) {
  count = threadCount;
  cursor = 0;
  warps.clear();
}

std::optional<uint32_t> Scheduler::next(const std::vector<bool> &isReady) {
  return order == Order::random ? nextOfWarp(isReady) : nextInTurn(isReady);
}

/// Each thread until it waits, then the one after it.
std::optional<uint32_t>
Scheduler::nextInTurn(const std::vector<bool> &isReady) {
  for (uint32_t tried = 0; tried < count; ++tried) {
    uint32_t thread = order == Order::reverse ? count - 1 - cursor : cursor;
    cursor = cursor + 1 == count ? 0 : cursor + 1;
    if (isReady[thread])
      return thread;
  }
  return std::nullopt;
}

/// One warp as far as it gets before another one: what a warp overwrites while
/// others have yet to read it shows.
std::optional<uint32_t>
Scheduler::nextOfWarp(const std::vector<bool> &isReady) {
  for (bool hasAskedAll = false;; hasAskedAll = true) {
    for (; !warps.empty(); warps.pop_back()) {
      uint32_t first = warps.back() * kWarpSize;
      uint32_t lanes = std::min(kWarpSize, count - first);
      for (uint32_t tried = 0; tried < lanes; ++tried) {
        cursor = cursor + 1 < lanes ? cursor + 1 : 0;
        if (isReady[first + cursor])
          return first + cursor;
      }
    }
    if (hasAskedAll)
      return std::nullopt;
    warps = arrange((count + kWarpSize - 1) / kWarpSize);
    cursor = random() % kWarpSize;
  }
}
