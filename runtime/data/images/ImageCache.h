//===- ImageCache.h - Decoded images in memory ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_IMAGECACHE_H
#define TCC_RUNTIME_DATA_IMAGES_IMAGECACHE_H

#include "runtime/data/images/Image.h"

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace tcc::runtime::images {

/// Images of samples, up to a number of bytes. What is in stays: an epoch takes
/// each sample once, so that one image in another's place gains nothing (Mohan
/// et al., Analyzing and Mitigating Data Stalls in DNN Training, VLDB 2021).
/// Callable from any thread.
class ImageCache {
public:
  explicit ImageCache(uint64_t bytes) : most(bytes) {}

  /// A number for images that one tensor takes from one source.
  uint32_t addOwner() { return owners++; }
  /// Null where it is not there.
  std::shared_ptr<const Image> find(uint32_t owner, int64_t sample);
  /// Keeps a copy, where there is room for one and memory.
  void keep(uint32_t owner, int64_t sample, const Image &image);

  struct Use {
    int64_t lookups, hits;
    uint64_t bytes;
  };
  Use use() const { return {lookups, hits, bytes}; }

private:
  struct Key {
    uint32_t owner;
    int64_t sample;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    size_t operator()(const Key &key) const;
  };
  /// Threads seldom want the same one.
  struct Shelf {
    std::mutex mutex;
    std::unordered_map<Key, std::shared_ptr<const Image>, Hash> images;
  };
  Shelf &shelfOf(const Key &key) {
    return shelves[Hash()(key) % shelves.size()];
  }

  const uint64_t most;
  std::array<Shelf, 16> shelves;
  std::atomic<uint32_t> owners = 0;
  std::atomic<int64_t> lookups = 0, hits = 0;
  std::atomic<uint64_t> bytes = 0;
};

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_IMAGECACHE_H
