#include "runtime/base/Prefault.h"

#include "runtime/base/ThreadPool.h"

#include <algorithm>
#include <cstdint>
#include <exception>
#include <sys/mman.h>
#include <unistd.h>
#include <unordered_set>

using namespace tcc;
using namespace tcc::runtime;

// Linux 5.14 has it; older headers do not.
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/// What the system is asked for at a time: 0.1 ms, or 2 ms where the host of a
/// virtual machine has to find the memory.
static constexpr uintptr_t kPieceBytes = uintptr_t(256) << 10;

void Prefault::touch(const Ranges &ranges, const std::atomic<bool> &stop) {
  const uintptr_t page = sysconf(_SC_PAGESIZE);
  std::unordered_set<uintptr_t> done; // whole pieces: ranges may overlap
  for (std::span<std::byte> range : ranges) {
    auto begin = reinterpret_cast<uintptr_t>(range.data());
    uintptr_t end = (begin + range.size() + page - 1) / page * page;
    begin = begin / page * page;
    while (begin < end) {
      uintptr_t next = begin / kPieceBytes * kPieceBytes + kPieceBytes;
      size_t bytes = std::min(next, end) - begin;
      bool isNew = bytes < kPieceBytes || done.insert(begin).second;
      if (stop.load(std::memory_order_relaxed))
        return;
      if (isNew &&
          madvise(reinterpret_cast<void *>(begin), bytes, MADV_POPULATE_WRITE))
        return;
      begin = next;
    }
  }
}

Prefault::Prefault(Ranges given) : ranges(std::move(given)) {
  size_t bytes = 0;
  for (std::span<std::byte> range : ranges)
    bytes += range.size();
  if (bytes >= kLeastBytes)
    start();
}

void Prefault::start() {
  if (defaultThreadCount() == 1)
    return touch(ranges, stop);
  try {
    thread = std::thread([this] { touch(ranges, stop); });
  } catch (const std::exception &) { // neither a thread nor memory for one
  }
}

Prefault::~Prefault() {
  stop.store(true, std::memory_order_relaxed);
  if (thread.joinable())
    thread.join();
}
