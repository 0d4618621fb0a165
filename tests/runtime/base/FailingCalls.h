//===- FailingCalls.h - A disk that does not do as it is told ---*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_BASE_FAILINGCALLS_H
#define TCC_TESTS_RUNTIME_BASE_FAILINGCALLS_H

#include "runtime/base/FileCalls.h"

namespace tcc::tests {

/// The operating system's calls, of which one fails, or that and all after it.
/// One thread at a time.
class FailingCalls final : public io::FileCalls {
public:
  /// `first` counts from 0; `reason` is an errno, or 0 for writes of half of
  /// what they were given.
  FailingCalls(int first, int reason, bool forEver)
      : first(first), reason(reason), forEver(forEver) {}

  /// How many calls were made, and whether one of them failed.
  int count() const { return made; }
  bool hasFailed() const { return failed; }

  int open(const char *path, int flags, mode_t mode) override {
    return fails() ? -1 : system.open(path, flags, mode);
  }
  ssize_t write(int file, const void *bytes, size_t size) override {
    if (fails())
      return -1;
    return system.write(file, bytes, isShort ? (size + 1) / 2 : size);
  }
  int ftruncate(int file, off_t size) override {
    return fails() ? -1 : system.ftruncate(file, size);
  }
  int fallocate(int file, int mode, off_t offset, off_t size) override {
    return fails() ? -1 : system.fallocate(file, mode, offset, size);
  }
  int fsync(int file) override { return fails() ? -1 : system.fsync(file); }
  /// What fails to be closed is closed.
  int close(int file) override {
    bool isFailure = fails();
    int result = system.close(file);
    if (isFailure)
      errno = reason;
    return isFailure ? -1 : result;
  }
  int rename(const char *from, const char *to) override {
    return fails() ? -1 : system.rename(from, to);
  }
  int unlink(const char *path) override {
    return fails() ? -1 : system.unlink(path);
  }
  int mkdir(const char *path, mode_t mode) override {
    return fails() ? -1 : system.mkdir(path, mode);
  }
  int rmdir(const char *path) override {
    return fails() ? -1 : system.rmdir(path);
  }

private:
  bool fails() {
    bool isMeant = made == first || (forEver && made > first);
    ++made;
    isShort = isMeant && reason == 0;
    failed |= isMeant;
    errno = reason;
    return isMeant && reason != 0;
  }

  io::FileCalls &system = io::systemCalls();
  int first, reason;
  bool forEver;
  int made = 0;
  bool failed = false, isShort = false;
};

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_BASE_FAILINGCALLS_H
