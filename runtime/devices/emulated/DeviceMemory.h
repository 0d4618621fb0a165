//===- DeviceMemory.h - Memory of the simulated device ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_DEVICEMEMORY_H
#define TCC_RUNTIME_DEVICES_EMULATED_DEVICEMEMORY_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <map>

namespace tcc::emulated {

/// Blocks in a range of addresses that no memory of the host is in. An address
/// is never used twice, and what was freed cannot be touched.
class DeviceMemory {
public:
  DeviceMemory();
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory &) = delete;
  DeviceMemory &operator=(const DeviceMemory &) = delete;

  /// Filled with a pattern; 0 if there is not as much.
  uint64_t allocate(size_t bytes);
  runtime::Status release(uint64_t address);
  /// All blocks.
  void releaseAll();

  /// Whether it is an address of the device, of memory or not.
  bool isInRange(uint64_t address) const;
  /// An error unless the bytes lie in one block.
  runtime::Status checkDevice(uint64_t address, size_t bytes) const;
  /// An error if they are the device's.
  runtime::Status checkHost(const void *address, size_t bytes) const;

  size_t usedBytes() const { return used; }
  static size_t totalBytes();

private:
  struct Block {
    size_t bytes, pages; ///< as asked for, and in whole pages
    bool isFree;
  };

  uint64_t base = 0, next = 0;
  size_t used = 0;
  std::map<uint64_t, Block> blocks; ///< by address, freed ones too
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_DEVICEMEMORY_H
