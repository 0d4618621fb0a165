//===- FileCalls.h - The calls by which files are written -------*- C++ -*-===//
//
// What a run keeps is written by these calls alone, so that tests can record
// them, and make each of them fail.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_BASE_FILECALLS_H
#define TCC_RUNTIME_BASE_FILECALLS_H

#include "runtime/base/Status.h"

#include <cerrno>
#include <string>
#include <sys/types.h>

namespace tcc::io {

/// Each does what the call of that name of POSIX does (fallocate: of Linux),
/// and fails as that does: -1 with errno. Any thread may call them.
class FileCalls {
public:
  virtual ~FileCalls() = default;

  virtual int open(const char *path, int flags, mode_t mode) = 0;
  virtual ssize_t write(int file, const void *bytes, size_t count) = 0;
  virtual int ftruncate(int file, off_t size) = 0;
  virtual int fallocate(int file, int mode, off_t offset, off_t count) = 0;
  /// Syncs a file, or a folder and with it the names in it.
  virtual int fsync(int file) = 0;
  virtual int close(int file) = 0;
  virtual int rename(const char *from, const char *to) = 0;
  virtual int unlink(const char *path) = 0;
  virtual int mkdir(const char *path, mode_t mode) = 0;
  virtual int rmdir(const char *path) = 0;
};

/// The file calls of the operating system.
FileCalls &systemCalls();

/// The file calls in use: the operating system's, unless a ScopedCalls lives.
FileCalls &calls();

/// Has other calls made, by all threads, while it lives; one at a time. Nothing
/// may be written when it begins or ends.
class ScopedCalls {
public:
  /// `other` outlives it.
  explicit ScopedCalls(FileCalls &other);
  ~ScopedCalls();
  ScopedCalls(const ScopedCalls &) = delete;
  ScopedCalls &operator=(const ScopedCalls &) = delete;
};

/// Makes a call again while a signal interrupts it.
template <typename Call> auto retry(Call call) {
  for (;;)
    if (auto result = call(); result >= 0 || errno != EINTR)
      return result;
}

// --- Folders: each fails with Code::Io and the path --------------------------

/// Makes the folder and those it lies in, and has the disk keep their names.
runtime::Status makeFolders(const std::string &path);

/// Makes a folder in one that is there. The disk keeps its name once that one
/// is synchronized.
runtime::Status makeFolder(const std::string &path);

/// Has the disk keep the names in a folder as they are now.
runtime::Status syncFolder(const std::string &path);

/// Moves a file or a folder; replaces an empty folder or a file of that name.
runtime::Status move(const std::string &from, const std::string &to);

/// Removes a folder with all in it, or a file; nothing if there is none.
runtime::Status removeAll(const std::string &path);

/// "cannot write 'PATH': " and what errno `reason` means.
runtime::Status cannotWrite(const std::string &path, int reason);

} // namespace tcc::io

#endif // TCC_RUNTIME_BASE_FILECALLS_H
