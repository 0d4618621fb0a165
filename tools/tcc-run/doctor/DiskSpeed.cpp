#include "tools/tcc-run/doctor/DiskSpeed.h"

#include "runtime/base/FileCalls.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;
using Clock = std::chrono::steady_clock;

/// What is written at a time, aligned for direct input and output.
static constexpr size_t kBlockBytes = size_t(1) << 20, kAlignment = 4096;
static constexpr uint64_t kMostBytes = uint64_t(32) << 20;
static constexpr double kMostSeconds = 0.5; ///< of writing, and of reading

namespace {

/// A file without a name, closed with this.
struct Scratch {
  int file = -1;
  bool isDirect = false;

  Scratch(int file, bool isDirect) : file(file), isDirect(isDirect) {}
  Scratch(Scratch &&other) noexcept
      : file(std::exchange(other.file, -1)), isDirect(other.isDirect) {}
  Scratch &operator=(Scratch &&) = delete;
  ~Scratch() {
    if (file >= 0)
      close(file);
  }
};

struct Free {
  void operator()(std::byte *block) const { std::free(block); }
};
using Block = std::unique_ptr<std::byte, Free>;

} // namespace

/// A file that had a name for a moment, where a system makes none without one.
static int openNamed(const std::string &folder, int flags) {
  std::string path = folder + "/.tcc-doctor-XXXXXX";
  int file = mkostemp(path.data(), flags);
  if (file >= 0)
    unlink(path.c_str());
  return file;
}

static Result<Scratch> openScratch(const std::string &folder) {
  for (int direct : {O_DIRECT, 0}) {
    int flags = O_RDWR | O_CLOEXEC | direct;
    int file = open(folder.c_str(), O_TMPFILE | flags, 0600);
    if (file < 0)
      file = openNamed(folder, O_CLOEXEC | direct);
    if (file >= 0)
      return Scratch(file, direct != 0);
  }
  return io::cannotWrite(folder, errno);
}

/// Bytes that no file system stores as fewer.
static Block makeBlock() {
  Block block(
      static_cast<std::byte *>(std::aligned_alloc(kAlignment, kBlockBytes)));
  uint64_t state = 0x9e3779b97f4a7c15;
  for (size_t i = 0; block && i < kBlockBytes; i += sizeof(state)) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    std::memcpy(block.get() + i, &state, sizeof(state));
  }
  return block;
}

static double secondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Calls `transfer` with the offset of each block, until it is long enough or
/// there are `most` bytes; returns how many there were, or an errno below 0.
template <typename Transfer>
static int64_t transferBlocks(uint64_t most, Transfer transfer) {
  auto start = Clock::now();
  int64_t done = 0;
  while (static_cast<uint64_t>(done) < most &&
         secondsSince(start) < kMostSeconds) {
    ssize_t count = io::retry([&] { return transfer(done); });
    if (count <= 0)
      return count == 0 ? -EIO : -errno;
    done += count;
    // Direct transfers go on at aligned offsets alone.
    if (static_cast<size_t>(count) != kBlockBytes)
      break;
  }
  return done;
}

Result<DiskSpeed> doctor::measureDisk(const std::string &folder) {
  auto scratch = openScratch(folder);
  if (!scratch.ok())
    return scratch.takeStatus();
  Block block = makeBlock();
  if (!block)
    return makeError(Code::OutOfMemory, "cannot allocate ", kBlockBytes,
                     " bytes");
  const int file = scratch->file;
  auto start = Clock::now();
  int64_t written = transferBlocks(kMostBytes, [&](int64_t offset) {
    return pwrite(file, block.get(), kBlockBytes, offset);
  });
  if (written < 0)
    return io::cannotWrite(folder, static_cast<int>(-written));
  if (io::retry([&] { return fdatasync(file); }) < 0)
    return io::cannotWrite(folder, errno);
  double writeSeconds = secondsSince(start);

  if (!scratch->isDirect) // a hint, which file systems in memory do not take
    (void)posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
  start = Clock::now();
  int64_t read =
      transferBlocks(static_cast<uint64_t>(written), [&](int64_t offset) {
        return pread(file, block.get(), kBlockBytes, offset);
      });
  if (read < 0)
    return makeError(Code::Io, "cannot read what was written to '", folder,
                     "': ", std::strerror(static_cast<int>(-read)));
  double readSeconds = secondsSince(start);
  return DiskSpeed{static_cast<double>(written) / std::max(writeSeconds, 1e-9),
                   static_cast<double>(read) / std::max(readSeconds, 1e-9),
                   static_cast<uint64_t>(written), scratch->isDirect};
}
