#include "runtime/base/Memory.h"

#include "runtime/base/Alignment.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

static void *allocateFromSystem(void *, size_t bytes, size_t alignment) {
  size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  return rounded < bytes ? nullptr : std::aligned_alloc(alignment, rounded);
}

static void releaseToSystem(void *, void *address, size_t) {
  std::free(address);
}

Allocator runtime::systemAllocator() {
  return {nullptr, allocateFromSystem, releaseToSystem, nullptr};
}

Memory &Memory::operator=(Memory &&other) noexcept {
  if (this == &other)
    return *this;
  reset();
  address = std::exchange(other.address, nullptr);
  bytes = std::exchange(other.bytes, 0);
  allocator = other.allocator;
  return *this;
}

void Memory::reset() {
  if (address)
    allocator.release(allocator.user, address, bytes);
  address = nullptr;
  bytes = 0;
}

bool Memory::discard(size_t offset, size_t count) {
  if (allocator.allocate != allocateFromSystem)
    return false;
  if (count == 0)
    return true;
  size_t page = sysconf(_SC_PAGESIZE);
  auto begin = reinterpret_cast<uintptr_t>(address + offset);
  uintptr_t end = begin + count;
  uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (first >= last) {
    std::memset(address + offset, 0, count);
    return true;
  }
  if (madvise(reinterpret_cast<void *>(first), last - first, MADV_DONTNEED))
    return false;
  std::memset(address + offset, 0, first - begin);
  std::memset(reinterpret_cast<void *>(last), 0, end - last);
  return true;
}

void Memory::preferHugePages() {
  // The huge pages of x86-64, and of AArch64 with small pages of 4 KiB.
  constexpr uintptr_t kHugePageBytes = uintptr_t(2) << 20;
  if (allocator.allocate != allocateFromSystem)
    return;
  auto begin = reinterpret_cast<uintptr_t>(address);
  uintptr_t first = (begin + kHugePageBytes - 1) / kHugePageBytes;
  uintptr_t last = (begin + bytes) / kHugePageBytes;
  if (first < last)
    (void)madvise(reinterpret_cast<void *>(first * kHugePageBytes),
                  (last - first) * kHugePageBytes, MADV_HUGEPAGE);
}

/// ", 123 are available" by the allocator or the system; empty if neither says.
static std::string describeAvailable(const Allocator &allocator) {
  if (allocator.available)
    return concat(", ", allocator.available(allocator.user), " are available");
  std::FILE *file = std::fopen("/proc/meminfo", "r");
  if (!file)
    return {};
  std::string text;
  unsigned long long kibibytes = 0;
  for (char line[256]; text.empty() && std::fgets(line, sizeof(line), file);)
    if (std::sscanf(line, "MemAvailable: %llu", &kibibytes) == 1)
      text = concat(", ", kibibytes * 1024, " are available");
  std::fclose(file);
  return text;
}

Status Memory::reserve(size_t needed, const Allocator &from,
                       std::string_view what) {
  if (bytes >= needed)
    return Status();
  auto larger = allocate(needed, from, what);
  if (!larger.ok())
    return larger.takeStatus();
  *this = std::move(*larger);
  return Status();
}

Result<Memory> Memory::allocate(size_t bytes, const Allocator &allocator,
                                std::string_view what) {
  Memory memory;
  memory.allocator = allocator;
  if (bytes == 0)
    return memory;
  void *address = allocator.allocate(allocator.user, bytes, kTensorAlignment);
  if (!address)
    return makeError(Code::OutOfMemory, "cannot allocate ", bytes,
                     " bytes for ", what, describeAvailable(allocator));
  memory.address = static_cast<std::byte *>(address);
  memory.bytes = bytes;
  return memory;
}
