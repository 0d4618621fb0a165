#include "runtime/base/ParallelCopy.h"

#include "runtime/base/ThreadPool.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <thread>
#include <vector>

using namespace tcc;

/// Two take 0.55 times as long as one; more than two were not measured.
static constexpr size_t kMostThreads = 4;
/// Bytes for one thread: some 3 ms, a hundred times what it takes to begin one.
static constexpr size_t kLeastBytes = size_t(32) << 20;

void runtime::copyInParallel(void *to, const void *from, size_t bytes) {
  auto *target = static_cast<std::byte *>(to);
  auto *source = static_cast<const std::byte *>(from);
  size_t most = std::min<size_t>(defaultThreadCount(), kMostThreads);
  size_t count = std::clamp<size_t>(bytes / kLeastBytes, 1, most);
  size_t part = bytes / count;
  std::vector<std::jthread> threads; // of the parts after `bytes`
  try {
    threads.reserve(count);
    for (size_t i = 1; i < count; ++i) {
      size_t begin = bytes - part;
      threads.emplace_back(
          [=] { std::memcpy(target + begin, source + begin, part); });
      bytes = begin;
    }
  } catch (const std::exception &) { // neither a thread nor memory for one
  }
  if (bytes > 0)
    std::memcpy(target, source, bytes);
}
