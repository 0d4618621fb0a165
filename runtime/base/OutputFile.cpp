#include "runtime/base/OutputFile.h"

#include "runtime/base/FileCalls.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

Result<OutputFile> OutputFile::create(const std::string &path) {
  struct stat existing;
  bool isSpecial =
      stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode);
  std::string temporary = isSpecial ? "" : concat(path, ".tmp", getpid());
  const std::string &name = isSpecial ? path : temporary;
  int file = io::retry([&] {
    return io::calls().open(name.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0666);
  });
  if (file < 0)
    return io::cannotWrite(path, errno);
  return OutputFile(path, std::move(temporary), file);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      file(std::exchange(other.file, -1)), size(other.size),
      failure(other.failure) {}

OutputFile::~OutputFile() {
  if (file < 0)
    return;
  io::calls().close(file);
  if (!temporary.empty())
    io::calls().unlink(temporary.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  size += bytes.size();
  while (!bytes.empty() && !failure) {
    ssize_t written = io::retry(
        [&] { return io::calls().write(file, bytes.data(), bytes.size()); });
    if (written <= 0)
      failure = written < 0 ? errno : EIO;
    else
      bytes = bytes.subspan(written);
  }
}

void OutputFile::padTo(uint64_t offset) {
  static constexpr std::byte kZeros[4096] = {};
  while (size < offset)
    write(std::span(kZeros).first(
        std::min<uint64_t>(offset - size, sizeof(kZeros))));
}

void OutputFile::reserve(uint64_t bytes) {
  if (failure || temporary.empty() || bytes == 0)
    return;
  int result = io::retry([&] {
    return io::calls().fallocate(file, FALLOC_FL_KEEP_SIZE, 0, off_t(bytes));
  });
  // File systems that cannot are as good without.
  if (result != 0 && errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL)
    failure = errno;
}

Status OutputFile::commit() {
  // Devices and pipes cannot be synchronized.
  if (!failure && !temporary.empty() &&
      io::retry([&] { return io::calls().fsync(file); }) != 0)
    failure = errno;
  // A file whose closing was interrupted is closed.
  if (io::calls().close(std::exchange(file, -1)) != 0 && errno != EINTR &&
      !failure)
    failure = errno;
  if (!failure && !temporary.empty() &&
      io::retry([&] {
        return io::calls().rename(temporary.c_str(), path.c_str());
      }) != 0)
    failure = errno;
  if (!failure)
    return Status();
  if (!temporary.empty())
    io::calls().unlink(temporary.c_str());
  return io::cannotWrite(path, failure);
}
