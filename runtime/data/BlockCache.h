//===- BlockCache.h - Blocks of files on a faster disk ----------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_BLOCKCACHE_H
#define TCC_RUNTIME_DATA_BLOCKCACHE_H

#include "runtime/base/Status.h"
#include "runtime/package/Format.h"

#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace tcc::runtime {

/// Blocks of files that lie on slow storage, in a folder: of each file that is
/// read, what was read of it, as it was when its size and time were these. The
/// processes of a host may share the folder: a block is a file that appears
/// whole, and is trusted once its checksum is right, so that a process may be
/// killed at any time. Blocks that this run has not used are removed, those of
/// the longest ago first, to make room; where there are none, no more are
/// added: a run takes each sample once an epoch, and what it would remove comes
/// no later than what it would add. Callable from any thread.
class BlockCache {
public:
  static constexpr uint64_t kBlock = 1 << 20;

  /// Code::Io where there is no folder, and none can be made.
  static Result<std::shared_ptr<BlockCache>> open(const std::string &folder,
                                                  uint64_t bytes);

  /// What a cached file is, and which of its blocks were found whole.
  class File {
  public:
    File(const std::string &path, uint64_t size, int64_t modified);

  private:
    friend class BlockCache;
    std::string key; ///< of its blocks
    uint64_t size;
    std::vector<std::atomic<bool>> areWhole;
  };

  /// Reads from the file itself, which is slow.
  using Load = std::function<Status(uint64_t offset, std::span<std::byte> to)>;

  /// Reads bytes that the file has.
  Status read(File &file, uint64_t offset, std::span<std::byte> to,
              const Load &load);

  struct Use {
    int64_t lookups, hits; ///< of blocks
    uint64_t bytes;        ///< in the folder, about
  };
  Use use() const { return {lookups, hits, used}; }
  /// Why no more blocks are written, told once; else empty.
  std::string takeProblem();

private:
  struct Entry {
    std::string path;
    uint64_t bytes;
    std::filesystem::file_time_type time; ///< of the last use
  };

  BlockCache(std::string folder, uint64_t bytes)
      : folder(std::move(folder)), most(bytes) {}

  std::string pathOf(const File &file, uint64_t block) const;
  Status readBlock(File &file, uint64_t block, uint64_t offset,
                   std::span<std::byte> to, const Load &load);
  bool readCached(File &file, uint64_t block, uint64_t offset,
                  std::span<std::byte> to);
  void keep(const File &file, uint64_t block, std::span<const std::byte> bytes);
  std::vector<Entry> list();
  bool makeRoom(uint64_t bytes);
  void fail(int reason);

  const std::string folder;
  const uint64_t most;
  /// The run's begin: times of files may be some milliseconds behind the clock.
  const std::filesystem::file_time_type begin =
      std::filesystem::file_time_type::clock::now() - std::chrono::seconds(1);
  std::atomic<int64_t> lookups = 0, hits = 0;
  std::atomic<uint64_t> used = 0, names = 0;
  std::atomic<bool> isFull = false, hasFailed = false;
  /// The locks of blocks, by a hash of their keys: one thread loads a block.
  std::array<std::mutex, 64> loading;
  std::mutex mutex; ///< of the folder, and the problem
  std::string problem;
};

/// A cache that is opened once somebody reads, and that all who have it share.
class SharedBlockCache {
public:
  SharedBlockCache(std::string folder, uint64_t bytes)
      : folder(std::move(folder)), bytes(bytes) {}

  Result<std::shared_ptr<BlockCache>> open() {
    if (opened)
      return opened;
    auto cache = BlockCache::open(folder, bytes);
    if (cache.ok())
      opened = *cache;
    return cache;
  }
  /// Null before.
  const std::shared_ptr<BlockCache> &get() const { return opened; }

private:
  const std::string folder;
  const uint64_t bytes;
  std::shared_ptr<BlockCache> opened;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_BLOCKCACHE_H
