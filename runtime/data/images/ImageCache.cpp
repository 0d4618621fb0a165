#include "runtime/data/images/ImageCache.h"

#include "runtime/data/SplitMix64.h"

#include <new>

using namespace tcc;
using namespace tcc::runtime::images;

size_t ImageCache::Hash::operator()(const Key &key) const {
  return runtime::SplitMix64::of(key.owner, uint64_t(key.sample), 0).next();
}

std::shared_ptr<const Image> ImageCache::find(uint32_t owner, int64_t sample) {
  Key key = {owner, sample};
  Shelf &shelf = shelfOf(key);
  ++lookups;
  std::lock_guard lock(shelf.mutex);
  auto found = shelf.images.find(key);
  if (found == shelf.images.end())
    return nullptr;
  ++hits;
  return found->second;
}

void ImageCache::keep(uint32_t owner, int64_t sample, const Image &image) {
  uint64_t size = image.bytes.size() + sizeof(Image);
  if (bytes.fetch_add(size) + size > most) {
    bytes -= size;
    return;
  }
  try {
    Key key = {owner, sample};
    auto copy = std::make_shared<const Image>(image);
    Shelf &shelf = shelfOf(key);
    std::lock_guard lock(shelf.mutex);
    // Two threads may have decoded it at once.
    if (shelf.images.emplace(key, std::move(copy)).second)
      return;
  } catch (const std::bad_alloc &) {
  }
  bytes -= size;
}
