#include "runtime/data/SampleFile.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

Result<std::shared_ptr<const SampleFile>>
SampleFile::open(const std::string &path, std::shared_ptr<BlockCache> cache) {
  // A pipe, which is refused, would be waited for.
  int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct stat info = {};
  bool isThere = file >= 0 && fstat(file, &info) == 0;
  int reason = isThere ? 0 : errno;
  if (isThere && !S_ISREG(info.st_mode))
    reason = S_ISDIR(info.st_mode) ? EISDIR : EINVAL;
  if (reason != 0) {
    if (file >= 0)
      ::close(file);
    return makeError(Code::Io, "cannot read '", path,
                     "': ", std::strerror(reason));
  }
  constexpr int64_t kNanoseconds = 1'000'000'000;
  int64_t modified = info.st_mtim.tv_sec * kNanoseconds + info.st_mtim.tv_nsec;
  std::shared_ptr<SampleFile> opened(new SampleFile(
      path, file, static_cast<uint64_t>(info.st_size), modified));
  if (cache)
    opened->cached =
        std::make_unique<BlockCache::File>(path, opened->bytes, modified);
  opened->cache = std::move(cache);
  return std::shared_ptr<const SampleFile>(std::move(opened));
}

SampleFile::~SampleFile() { ::close(file); }

Status SampleFile::read(uint64_t offset, std::span<std::byte> to) const {
  if (!cache)
    return readItself(offset, to);
  return cache->read(*cached, offset, to,
                     [this](uint64_t offset, std::span<std::byte> to) {
                       return readItself(offset, to);
                     });
}

Status SampleFile::readItself(uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    ssize_t count =
        pread(file, to.data(), to.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return makeError(Code::Io, "cannot read '", name, "' at byte ", offset,
                       ": ", std::strerror(errno));
    if (count == 0)
      return makeError(Code::BadData, "'", name, "' ends at byte ", offset,
                       ", and had ", bytes, " when it was opened");
    offset += static_cast<uint64_t>(count);
    to = to.subspan(static_cast<size_t>(count));
  }
  return Status();
}
