#include "runtime/data/BlockCache.h"

#include "runtime/base/FileCalls.h"
#include "runtime/package/Digest.h"

#include <algorithm>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
namespace fs = std::filesystem;

static constexpr std::string_view kEnding = ".block";

BlockCache::File::File(const std::string &path, uint64_t size, int64_t modified)
    : size(size), areWhole((size + kBlock - 1) / kBlock) {
  std::error_code error;
  std::string name =
      concat(fs::absolute(path, error).lexically_normal().string(), "\n", size,
             "\n", modified);
  constexpr char kDigits[] = "0123456789abcdef";
  for (uint8_t byte : digestOf(std::as_bytes(std::span(name))).bytes) {
    key += kDigits[byte >> 4];
    key += kDigits[byte & 15];
  }
}

std::string BlockCache::pathOf(const File &file, uint64_t block) const {
  return concat(folder, "/", file.key, "-", block, kEnding);
}

//===----------------------------------------------------------------------===//
// The folder
//===----------------------------------------------------------------------===//

std::vector<BlockCache::Entry> BlockCache::list() {
  std::vector<Entry> entries;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone; // another process may remove it
    Entry entry = {at->path().string(), at->file_size(gone),
                   at->last_write_time(gone)};
    // Also what a process that was killed has left half written.
    if (!gone && entry.path.find(kEnding) != entry.path.npos)
      entries.push_back(std::move(entry));
  }
  return entries;
}

/// False where this run has used all that is there.
bool BlockCache::makeRoom(uint64_t bytes) {
  std::lock_guard lock(mutex);
  std::vector<Entry> entries = list();
  uint64_t sum = 0;
  for (const Entry &entry : entries)
    sum += entry.bytes;
  std::ranges::sort(entries, {}, &Entry::time);
  for (const Entry &entry : entries) {
    if (sum + bytes <= most || entry.time >= begin)
      break;
    if (io::calls().unlink(entry.path.c_str()) == 0)
      sum -= entry.bytes;
  }
  used = sum;
  return sum + bytes <= most;
}

Result<std::shared_ptr<BlockCache>> BlockCache::open(const std::string &folder,
                                                     uint64_t bytes) {
  if (Status status = io::makeFolders(folder); !status.ok())
    return status;
  std::error_code error;
  if (!fs::is_directory(folder, error))
    return makeError(Code::Io, "'", folder, "' is no folder for a cache");
  std::shared_ptr<BlockCache> cache(new BlockCache(folder, bytes));
  cache->makeRoom(0);
  return cache;
}

void BlockCache::fail(int reason) {
  std::lock_guard lock(mutex);
  hasFailed = true;
  if (problem.empty())
    problem =
        concat("'", folder, "' takes no more blocks: ", std::strerror(reason));
}

std::string BlockCache::takeProblem() {
  std::lock_guard lock(mutex);
  return std::exchange(problem, {});
}

//===----------------------------------------------------------------------===//
// Blocks
//===----------------------------------------------------------------------===//

static bool readAll(int file, uint64_t offset, std::span<std::byte> to) {
  while (!to.empty()) {
    ssize_t count = io::retry(
        [&] { return pread(file, to.data(), to.size(), off_t(offset)); });
    if (count <= 0)
      return false;
    offset += uint64_t(count);
    to = to.subspan(size_t(count));
  }
  return true;
}

/// Trusts a block once, as a whole.
bool BlockCache::readCached(File &file, uint64_t block, uint64_t offset,
                            std::span<std::byte> to) {
  int cached = ::open(pathOf(file, block).c_str(), O_RDONLY | O_CLOEXEC);
  if (cached < 0)
    return false;
  bool isRead = false;
  if (file.areWhole[block]) {
    isRead = readAll(cached, offset, to);
  } else {
    format::Digest digest = {};
    std::vector<std::byte> bytes(std::min(kBlock, file.size - block * kBlock));
    auto stored = std::as_writable_bytes(std::span(&digest, 1));
    isRead = readAll(cached, 0, bytes) &&
             readAll(cached, bytes.size(), stored) &&
             std::memcmp(digestOf(bytes).bytes, digest.bytes,
                         sizeof(digest.bytes)) == 0;
    if (isRead) {
      std::ranges::copy(std::span(bytes).subspan(offset, to.size()),
                        to.begin());
      futimens(cached, nullptr); // used now
      file.areWhole[block] = true;
    }
  }
  ::close(cached);
  return isRead;
}

/// What is not kept is read again.
void BlockCache::keep(const File &file, uint64_t block,
                      std::span<const std::byte> bytes) {
  uint64_t size = bytes.size() + sizeof(format::Digest);
  if (isFull || hasFailed)
    return;
  if (used + size > most && !makeRoom(size)) {
    isFull = true;
    return;
  }
  std::string path = pathOf(file, block);
  std::string own = concat(path, ".", getpid(), "-", names++);
  int to = io::calls().open(own.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (to < 0)
    return fail(errno);
  format::Digest digest = digestOf(bytes);
  int failure = 0;
  for (auto rest : {bytes, std::as_bytes(std::span(&digest, 1))})
    while (!rest.empty() && failure == 0) {
      ssize_t count = io::retry(
          [&] { return io::calls().write(to, rest.data(), rest.size()); });
      failure = count < 0 ? errno : 0;
      rest = rest.subspan(size_t(std::max<ssize_t>(count, 0)));
    }
  if (io::calls().close(to) != 0 && failure == 0)
    failure = errno;
  if (failure == 0 && io::calls().rename(own.c_str(), path.c_str()) != 0)
    failure = errno;
  if (failure == 0) {
    used += size;
    return;
  }
  io::calls().unlink(own.c_str());
  fail(failure);
}

Status BlockCache::readBlock(File &file, uint64_t block, uint64_t offset,
                             std::span<std::byte> to, const Load &load) {
  ++lookups;
  if (readCached(file, block, offset, to)) {
    ++hits;
    return Status();
  }
  size_t place = (std::hash<std::string>()(file.key) + block) % loading.size();
  std::lock_guard lock(loading[place]);
  if (readCached(file, block, offset, to)) { // another thread has loaded it
    ++hits;
    return Status();
  }
  file.areWhole[block] = false;
  if (isFull || hasFailed)
    return load(block * kBlock + offset, to);
  std::vector<std::byte> bytes(std::min(kBlock, file.size - block * kBlock));
  if (Status status = load(block * kBlock, bytes); !status.ok())
    return status;
  std::ranges::copy(std::span(bytes).subspan(offset, to.size()), to.begin());
  keep(file, block, bytes);
  return Status();
}

Status BlockCache::read(File &file, uint64_t offset, std::span<std::byte> to,
                        const Load &load) {
  while (!to.empty()) {
    uint64_t block = offset / kBlock, inside = offset % kBlock;
    auto part = to.first(std::min<uint64_t>(to.size(), kBlock - inside));
    if (block >= file.areWhole.size() ||
        offset + part.size() > file.size) // the file says what is wrong
      return load(offset, to);
    if (Status status = readBlock(file, block, inside, part, load);
        !status.ok())
      return status;
    offset += part.size();
    to = to.subspan(part.size());
  }
  return Status();
}
