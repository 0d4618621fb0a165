#include "runtime/base/OutputFile.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

using namespace tcc;
using namespace tcc::runtime;

static Status cannotWrite(const std::string &path, int reason) {
  return makeError(Code::Io, "cannot write '", path,
                   "': ", std::strerror(reason));
}

Result<OutputFile> OutputFile::create(const std::string &path) {
  struct stat existing;
  bool isSpecial =
      stat(path.c_str(), &existing) == 0 && !S_ISREG(existing.st_mode);
  std::string temporary = isSpecial ? "" : concat(path, ".tmp", getpid());
  const std::string &name = isSpecial ? path : temporary;
  int file = open(name.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0)
    return cannotWrite(path, errno);
  return OutputFile(path, std::move(temporary), file);
}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : path(std::move(other.path)), temporary(std::move(other.temporary)),
      file(std::exchange(other.file, -1)), size(other.size),
      failure(other.failure) {}

OutputFile::~OutputFile() {
  if (file < 0)
    return;
  close(file);
  if (!temporary.empty())
    unlink(temporary.c_str());
}

void OutputFile::write(std::span<const std::byte> bytes) {
  size += bytes.size();
  while (!bytes.empty() && !failure) {
    ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR)
      continue;
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

Status OutputFile::commit() {
  // Devices and pipes cannot be synchronized.
  if (!failure && !temporary.empty() && fsync(file) != 0)
    failure = errno;
  if (close(std::exchange(file, -1)) != 0 && !failure)
    failure = errno;
  if (!failure && !temporary.empty() &&
      std::rename(temporary.c_str(), path.c_str()) != 0)
    failure = errno;
  if (!failure)
    return Status();
  if (!temporary.empty())
    unlink(temporary.c_str());
  return cannotWrite(path, failure);
}
