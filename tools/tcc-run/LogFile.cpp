#include "tools/tcc-run/LogFile.h"

#include "runtime/base/FileCalls.h"

#include <cstring>
#include <fcntl.h>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

Result<LogFile> LogFile::open(std::string path, int flags, const char *noun) {
  LogFile log;
  log.path = std::move(path);
  log.noun = noun;
  log.file = io::retry([&] {
    return io::calls().open(log.path.c_str(),
                            O_WRONLY | O_CREAT | O_APPEND | flags, 0666);
  });
  if (!log.isOpen())
    return io::cannotWrite(log.path, errno);
  return log;
}

LogFile &LogFile::operator=(LogFile &&other) noexcept {
  std::swap(path, other.path);
  std::swap(noun, other.noun);
  std::swap(file, other.file);
  std::swap(rest, other.rest);
  std::swap(restBytes, other.restBytes);
  std::swap(dropped, other.dropped);
  std::swap(failure, other.failure);
  return *this;
}

LogFile::~LogFile() {
  if (isOpen())
    io::calls().close(file);
}

Status LogFile::cut(uint64_t size) {
  if (io::retry([&] { return io::calls().ftruncate(file, size); }) != 0)
    return io::cannotWrite(path, errno);
  return Status();
}

void LogFile::writeRest() {
  failure = 0;
  while (!rest.empty() && !failure) {
    std::string &record = rest.front();
    ssize_t written = io::retry(
        [&] { return io::calls().write(file, record.data(), record.size()); });
    if (written <= 0) {
      failure = written < 0 ? errno : EIO;
      continue;
    }
    restBytes -= written;
    record.erase(0, written);
    if (record.empty())
      rest.pop_front();
  }
}

bool LogFile::hasRoomFor(size_t bytes) const {
  constexpr size_t kMostBytes = 1 << 20; // but of a single record
  return rest.empty() || restBytes + bytes <= kMostBytes;
}

Status LogFile::add(std::string record) {
  if (hasRoomFor(record.size())) {
    restBytes += record.size();
    rest.push_back(std::move(record));
  } else {
    ++dropped;
  }
  bool wasFailing = failure != 0;
  writeRest();
  return failure && !wasFailing ? io::cannotWrite(path, failure) : Status();
}

Status LogFile::close() {
  if (!isOpen())
    return Status();
  writeRest();
  // A file whose closing was interrupted is closed.
  bool isClosed = io::calls().close(std::exchange(file, -1)) == 0;
  if (!isClosed && errno != EINTR && !failure)
    failure = errno;
  dropped += static_cast<int64_t>(rest.size());
  if (dropped > 0)
    return makeError(Code::Io, "'", path, "' lacks ", dropped, " ", noun, ": ",
                     failure ? std::strerror(failure) : "they were too many");
  return failure ? io::cannotWrite(path, failure) : Status();
}
