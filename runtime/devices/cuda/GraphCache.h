//===- GraphCache.h - Walks that a device can replay ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_GRAPHCACHE_H
#define TCC_RUNTIME_DEVICES_CUDA_GRAPHCACHE_H

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/Driver.h"
#include "runtime/devices/cuda/Timeline.h"

#include <vector>

namespace tcc::runtime::cuda {

/// What one run gave the stream: a function of symbols and addresses, and of
/// the run, which has its own place for faults.
struct CachedGraph {
  const Run *run = nullptr;
  std::vector<int64_t> symbols;
  std::vector<std::byte *> addresses;

  GraphExecHandle exec = nullptr; ///< null until it is captured
  bool mayCapture = false;        ///< it ran whole, and there were slots enough
  std::vector<int64_t> sizes;     ///< the slots after the run
  double flops = 0;               ///< of the run
  std::vector<uint32_t> faulting; ///< of its launches, in order
  std::vector<Exchange> exchanges;    ///< between ranks, in order
  std::unique_ptr<Timeline> timeline; ///< of a graph that is traced
  uint64_t lastUse = 0;
};

/// The graphs of what ran last; no run takes the place of another.
class GraphCache {
public:
  explicit GraphCache(const Driver &driver) : driver(driver) {}
  ~GraphCache() { clear(); }
  GraphCache(const GraphCache &) = delete;
  GraphCache &operator=(const GraphCache &) = delete;

  /// Null if the run is not there.
  CachedGraph *find(const Run &run);
  /// Takes the place of the one of the same run that was used least recently,
  /// if there are as many. Graphs that were found before move.
  CachedGraph &insert(const Run &run);
  void clear();

private:
  /// A run has as many shapes and addresses in turns.
  static constexpr size_t kGraphsPerRun = 8;

  CachedGraph &findPlace(const Run &run);

  const Driver &driver;
  std::vector<CachedGraph> graphs;
  uint64_t uses = 0;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_GRAPHCACHE_H
