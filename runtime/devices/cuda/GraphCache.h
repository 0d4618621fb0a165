//===- GraphCache.h - Walks that a device can replay ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_GRAPHCACHE_H
#define TCC_RUNTIME_DEVICES_CUDA_GRAPHCACHE_H

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/Driver.h"

#include <vector>

namespace tcc::runtime::cuda {

/// What one walk gave the stream: a function of entry, symbols and addresses,
/// and of the walk, which has its own place for faults.
struct CachedGraph {
  const Walk *walk = nullptr;
  const format::Entry *entry = nullptr;
  std::vector<int64_t> symbols;
  std::vector<std::byte *> addresses;

  GraphExecHandle exec = nullptr; ///< null until it is captured
  bool isTooLong = false;         ///< never captured: see CudaStream::takeSlot
  std::vector<int64_t> sizes;     ///< the slots after the walk
  std::vector<const format::Launch *> faulting; ///< of its launches, in order
  uint64_t lastUse = 0;
};

/// The graphs of the walks that ran last.
class GraphCache {
public:
  explicit GraphCache(const Driver &driver) : driver(driver) {}
  ~GraphCache() { clear(); }
  GraphCache(const GraphCache &) = delete;
  GraphCache &operator=(const GraphCache &) = delete;

  /// Null if the walk is not there.
  CachedGraph *find(const Walk &walk);
  /// Takes the place of the one that was used least recently.
  void insert(const Walk &walk);
  void clear();

private:
  static constexpr size_t kMaxGraphs = 8;

  const Driver &driver;
  std::vector<CachedGraph> graphs;
  uint64_t uses = 0;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_GRAPHCACHE_H
