//===- FolderLock.h - One job writes a folder of checkpoints ----*- C++ -*-===//
#ifndef TCC_RUNTIME_TRAIN_FOLDERLOCK_H
#define TCC_RUNTIME_TRAIN_FOLDERLOCK_H

#include "runtime/base/Status.h"

#include <string>
#include <utility>

namespace tcc::runtime {

/// While it lives no other process writes checkpoints of the folder, whose file
/// `lock` says which host, boot and process does. The file is locked (flock):
/// that ends with the process, however it ends. Of file systems without such
/// locks what the file says counts.
class FolderLock {
public:
  /// Makes the folder. Code::Usage, naming it, where another process has it.
  static Result<FolderLock> take(const std::string &folder);
  FolderLock(FolderLock &&other) noexcept;
  FolderLock &operator=(FolderLock &&) = delete;
  /// Gives it back.
  ~FolderLock();

  /// The process that had it before and ended without giving it back, for the
  /// user; empty if there was none.
  const std::string &takenFrom() const { return former; }

private:
  FolderLock(std::string path, int file, std::string former)
      : path(std::move(path)), file(file), former(std::move(former)) {}

  /// Leaves the lock to whoever has it.
  void disown();

  std::string path;
  int file; ///< -1 when moved from
  std::string former;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_TRAIN_FOLDERLOCK_H
