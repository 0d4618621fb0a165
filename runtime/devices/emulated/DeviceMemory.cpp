#include "runtime/devices/emulated/DeviceMemory.h"

#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;

static constexpr size_t kPageBytes = 4096;
static constexpr size_t kRangeBytes = size_t(1) << 40;
/// What was never written is no number.
static constexpr int kPattern = 0xff;

static void *toPointer(uint64_t address) {
  return reinterpret_cast<void *>(address);
}

DeviceMemory::DeviceMemory() {
  void *range = mmap(nullptr, kRangeBytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1, 0);
  if (range != MAP_FAILED)
    base = next = reinterpret_cast<uint64_t>(range);
}

DeviceMemory::~DeviceMemory() {
  if (base)
    munmap(toPointer(base), kRangeBytes);
}

size_t DeviceMemory::totalBytes() {
  return static_cast<size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

uint64_t DeviceMemory::allocate(size_t bytes) {
  if (!base || bytes > totalBytes() - std::min(used, totalBytes()))
    return 0;
  size_t pages = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  // A page that nothing may touch follows each block.
  if (pages + kPageBytes > base + kRangeBytes - next ||
      mprotect(toPointer(next), pages, PROT_READ | PROT_WRITE) != 0)
    return 0;
  uint64_t address = next;
  next += pages + kPageBytes;
  std::memset(toPointer(address), kPattern, pages);
  blocks[address] = {bytes, pages, false};
  used += bytes;
  return address;
}

Status DeviceMemory::release(uint64_t address) {
  auto block = blocks.find(address);
  if (block == blocks.end() || block->second.isFree)
    return makeError(Code::Device, "freeing what is no block of the device");
  // New pages in the place of the old ones give their memory back.
  mmap(toPointer(address), block->second.pages, PROT_NONE,
       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, /*fd=*/-1, 0);
  block->second.isFree = true;
  used -= block->second.bytes;
  return Status();
}

void DeviceMemory::releaseAll() {
  for (auto &[address, block] : blocks)
    if (!block.isFree)
      (void)release(address);
}

bool DeviceMemory::isInRange(uint64_t address) const {
  return address >= base && address < base + kRangeBytes;
}

Status DeviceMemory::checkDevice(uint64_t address, size_t bytes) const {
  if (!isInRange(address))
    return makeError(Code::Device, "an address of the host, or none, where "
                                   "one of the device is expected");
  auto block = blocks.upper_bound(address);
  if (block == blocks.begin())
    return makeError(Code::Device, "an address before all memory");
  --block;
  uint64_t offset = address - block->first;
  if (block->second.isFree)
    return makeError(Code::Device, "memory is used that was freed, byte ",
                     offset, " of ", block->second.bytes);
  if (offset <= block->second.bytes && bytes <= block->second.bytes - offset)
    return Status();
  return makeError(Code::Device, "bytes ", offset, " to ", offset + bytes,
                   " lie outside a block of ", block->second.bytes);
}

Status DeviceMemory::checkHost(const void *address, size_t bytes) const {
  uint64_t first = reinterpret_cast<uint64_t>(address);
  if (address && (first + bytes <= base || first >= base + kRangeBytes))
    return Status();
  return makeError(Code::Device, "an address of the device, or none, where one "
                                 "of the host is expected");
}
