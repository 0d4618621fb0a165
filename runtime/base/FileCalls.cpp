#include "runtime/base/FileCalls.h"

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

using namespace tcc;
using namespace tcc::io;
using runtime::Status;
namespace fs = std::filesystem;

namespace {

class SystemCalls final : public FileCalls {
public:
  int open(const char *path, int flags, mode_t mode) override {
    return ::open(path, flags | O_CLOEXEC, mode);
  }
  ssize_t write(int file, const void *bytes, size_t count) override {
    return ::write(file, bytes, count);
  }
  int ftruncate(int file, off_t size) override {
    return ::ftruncate(file, size);
  }
  int fallocate(int file, int mode, off_t offset, off_t count) override {
    return ::fallocate(file, mode, offset, count);
  }
  int fsync(int file) override { return ::fsync(file); }
  int close(int file) override { return ::close(file); }
  int rename(const char *from, const char *to) override {
    return std::rename(from, to);
  }
  int unlink(const char *path) override { return ::unlink(path); }
  int mkdir(const char *path, mode_t mode) override {
    return ::mkdir(path, mode);
  }
  int rmdir(const char *path) override { return ::rmdir(path); }
};

} // namespace

FileCalls &io::systemCalls() {
  static SystemCalls calls;
  return calls;
}

static std::atomic<FileCalls *> current = nullptr;

FileCalls &io::calls() {
  FileCalls *other = current;
  return other ? *other : systemCalls();
}

ScopedCalls::ScopedCalls(FileCalls &other) { current = &other; }

ScopedCalls::~ScopedCalls() { current = nullptr; }

Status io::cannotWrite(const std::string &path, int reason) {
  return runtime::makeError(runtime::Code::Io, "cannot write '", path,
                            "': ", std::strerror(reason));
}

static Status check(int result, const std::string &path) {
  return result >= 0 ? Status() : cannotWrite(path, errno);
}

/// The folder that a path lies in.
static std::string getParent(const std::string &path) {
  fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

Status io::makeFolders(const std::string &path) {
  std::error_code error;
  if (path.empty() || fs::is_directory(path, error))
    return Status();
  std::string whole = fs::path(path).lexically_normal();
  if (whole.back() == '/')
    whole.pop_back();
  std::string parent = getParent(whole);
  if (Status status = makeFolders(parent); !status.ok())
    return status;
  Status status = makeFolder(whole);
  return status.ok() ? syncFolder(parent) : std::move(status);
}

Status io::makeFolder(const std::string &path) {
  bool isMade = retry([&] { return calls().mkdir(path.c_str(), 0777); }) == 0 ||
                errno == EEXIST;
  return isMade ? Status() : cannotWrite(path, errno);
}

Status io::syncFolder(const std::string &path) {
  int folder = retry(
      [&] { return calls().open(path.c_str(), O_RDONLY | O_DIRECTORY, 0); });
  if (folder < 0)
    return cannotWrite(path, errno);
  int failure = retry([&] { return calls().fsync(folder); }) < 0 ? errno : 0;
  calls().close(folder);
  // Where folders cannot be synchronized, the file system does it by itself.
  if (failure == 0 || failure == EINVAL)
    return Status();
  return cannotWrite(path, failure);
}

Status io::move(const std::string &from, const std::string &to) {
  return check(retry([&] { return calls().rename(from.c_str(), to.c_str()); }),
               to);
}

Status io::removeAll(const std::string &path) {
  std::error_code error;
  fs::file_status found = fs::symlink_status(path, error);
  if (!fs::exists(found))
    return Status();
  if (!fs::is_directory(found))
    return check(retry([&] { return calls().unlink(path.c_str()); }), path);
  std::vector<std::string> names;
  for (const fs::directory_entry &entry : fs::directory_iterator(path, error))
    names.push_back(entry.path());
  for (const std::string &name : names)
    if (Status status = removeAll(name); !status.ok())
      return status;
  return check(retry([&] { return calls().rmdir(path.c_str()); }), path);
}
