#include "runtime/data/SampleFile.h"
#include "tests/runtime/Fixture.h"
#include "tests/runtime/base/FailingCalls.h"

#include <filesystem>
#include <random>
#include <thread>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tests;
namespace fs = std::filesystem;

namespace {

/// Files of some blocks, and a cache.
class BlockCacheTest : public testing::Test {
protected:
  static constexpr uint64_t kBlock = BlockCache::kBlock;

  std::vector<char> write(const std::string &name, size_t size, int seed) {
    std::mt19937 random(seed);
    std::vector<char> bytes(size);
    for (char &byte : bytes)
      byte = char(random());
    writeBytes(folder / name, bytes);
    return bytes;
  }

  std::shared_ptr<BlockCache> open(uint64_t bytes = 64 * kBlock) {
    return unwrap(BlockCache::open(folder / "cache", bytes));
  }

  /// Reads a piece of a file.
  std::vector<char> read(const std::string &name,
                         std::shared_ptr<BlockCache> cache, uint64_t offset,
                         size_t size) {
    auto file = unwrap(SampleFile::open(folder / name, std::move(cache)));
    std::vector<char> bytes(size);
    EXPECT_THAT(file->read(offset, std::as_writable_bytes(std::span(bytes))),
                succeeds());
    return bytes;
  }

  std::vector<std::string> listBlocks() {
    std::vector<std::string> paths;
    for (const auto &entry : fs::directory_iterator(folder / "cache"))
      paths.push_back(entry.path());
    return paths;
  }

  static std::vector<char> part(const std::vector<char> &bytes, size_t offset,
                                size_t size) {
    return {bytes.begin() + ptrdiff_t(offset),
            bytes.begin() + ptrdiff_t(offset + size)};
  }

  /// The file's bytes in another order, its size and time as they were.
  void replace(const std::string &name, std::vector<char> bytes) {
    auto time = fs::last_write_time(folder / name);
    std::ranges::reverse(bytes);
    writeBytes(folder / name, bytes);
    fs::last_write_time(folder / name, time);
  }

  TemporaryFolder folder;
};

} // namespace

TEST_F(BlockCacheTest, HasTheBytesOfTheFile) {
  size_t size = 2 * kBlock + 1000;
  auto bytes = write("file", size, 1);
  auto cache = open();
  std::mt19937 random(2);
  for (int i = 0; i < 50; ++i) {
    size_t offset = random() % size;
    size_t count = random() % std::min<size_t>(size - offset, 3 * kBlock / 2);
    EXPECT_EQ(read("file", cache, offset, count), part(bytes, offset, count));
  }
  EXPECT_EQ(read("file", cache, 0, size), bytes);
  EXPECT_EQ(listBlocks().size(), 3u);
  EXPECT_GT(cache->use().hits, cache->use().lookups - 4);
  EXPECT_EQ(cache->use().bytes, size + 3 * sizeof(format::Digest));
  auto file = unwrap(SampleFile::open(folder / "file", cache));
  std::byte more[10];
  EXPECT_THAT(file->read(size - 5, more), failsWith(Code::BadData, "ends at"));
}

// Of a later process, too, and not of a file that has changed.
TEST_F(BlockCacheTest, DoesNotReadAgain) {
  auto bytes = write("file", kBlock + 7, 1);
  read("file", open(), 0, bytes.size());
  replace("file", bytes);
  auto cache = open();
  EXPECT_EQ(read("file", cache, 3, kBlock), part(bytes, 3, kBlock));
  EXPECT_EQ(cache->use().hits, 2);
  fs::last_write_time(folder / "file", fs::file_time_type());
  EXPECT_NE(read("file", cache, 3, 100), part(bytes, 3, 100));
}

TEST_F(BlockCacheTest, ReadsAgainWhatIsDamaged) {
  auto bytes = write("file", 5000, 1);
  for (int damage = 0; damage < 3; ++damage) {
    read("file", open(), 0, 10);
    auto paths = listBlocks();
    ASSERT_EQ(paths.size(), 1u);
    auto stored = readBytes(paths[0]);
    if (damage == 0)
      stored[100] ^= 1;
    else
      stored.resize(damage == 1 ? 200 : stored.size() - 1);
    writeBytes(paths[0], stored);
    auto cache = open();
    EXPECT_EQ(read("file", cache, 90, 50), part(bytes, 90, 50));
    EXPECT_EQ(cache->use().hits, 0);
    EXPECT_EQ(read("file", cache, 0, 5000), bytes);
    EXPECT_EQ(cache->use().hits, 1);
  }
}

TEST_F(BlockCacheTest, MakesRoomOfWhatTheRunHasNotUsed) {
  constexpr uint64_t kWhole = kBlock + sizeof(format::Digest);
  for (int i = 0; i < 4; ++i)
    write(std::to_string(i), kBlock, i);
  {
    auto cache = open(3 * kWhole);
    for (int i = 0; i < 3; ++i)
      read(std::to_string(i), cache, 0, 10);
    read("3", cache, 0, 10); // all is used: there is no room
    EXPECT_EQ(listBlocks().size(), 3u);
    EXPECT_EQ(read("3", cache, 0, 10).size(), 10u);
  }
  // As if a day had passed; the later run uses one of them.
  for (const std::string &path : listBlocks())
    fs::last_write_time(path,
                        fs::last_write_time(path) - std::chrono::hours(24));
  auto cache = open(3 * kWhole);
  read("1", cache, 0, 10);
  EXPECT_EQ(cache->use().hits, 1);
  read("3", cache, 0, 10);
  EXPECT_EQ(listBlocks().size(), 3u);
  read("1", cache, 0, 10);
  read("3", cache, 0, 10);
  EXPECT_EQ(cache->use().hits, 3);
  // A smaller cache makes room as it is opened.
  for (const std::string &path : listBlocks())
    fs::last_write_time(path,
                        fs::last_write_time(path) - std::chrono::hours(24));
  writeBytes(listBlocks()[0] + ".77-0", {'x'}); // of a process that was killed
  for (const std::string &path : listBlocks())
    if (path.ends_with("-0") && !path.ends_with(".block"))
      fs::last_write_time(path, fs::file_time_type());
  open(2 * kWhole);
  EXPECT_EQ(listBlocks().size(), 2u);
}

TEST_F(BlockCacheTest, GoesOnWithoutADisk) {
  auto bytes = write("file", 3000, 1);
  auto cache = open();
  FailingCalls calls(1, ENOSPC, /*forEver=*/true);
  {
    io::ScopedCalls scope(calls);
    EXPECT_EQ(read("file", cache, 0, 3000), bytes);
  }
  EXPECT_TRUE(calls.hasFailed());
  EXPECT_THAT(cache->takeProblem(),
              testing::HasSubstr("takes no more blocks: No space left"));
  EXPECT_EQ(cache->takeProblem(), "");
  EXPECT_EQ(read("file", cache, 5, 100), part(bytes, 5, 100));
  writeBytes(folder / "no folder", {});
  EXPECT_THAT(BlockCache::open(folder / "no folder", kBlock).takeStatus(),
              failsWith(Code::Io, "no folder"));
}

TEST_F(BlockCacheTest, ServesThreads) {
  auto bytes = write("file", 4 * kBlock, 1);
  auto cache = open();
  auto file = unwrap(SampleFile::open(folder / "file", cache));
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int seed = 0; seed < 4; ++seed)
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 100; ++i) {
        size_t offset = random() % (4 * kBlock - 5000);
        std::vector<char> found(5000);
        if (!file->read(offset, std::as_writable_bytes(std::span(found)))
                 .ok() ||
            found != part(bytes, offset, 5000))
          ++wrong;
      }
    });
  for (std::thread &thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(listBlocks().size(), 4u);
}
