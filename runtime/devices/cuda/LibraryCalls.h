//===- LibraryCalls.h - Launches that a library does instead ----*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_LIBRARYCALLS_H
#define TCC_RUNTIME_DEVICES_CUDA_LIBRARYCALLS_H

#include "runtime/devices/cuda/DescribeLaunch.h"

#include <map>
#include <mutex>

namespace tcc::runtime::cuda {

/// Gives launches to a library where it has them. How is chosen the first time
/// that a kernel meets sizes and alignments, and kept.
class LibraryCalls {
public:
  /// `library` and the workspace live longer; `library` may be null.
  LibraryCalls(Library *library, std::mutex &mutex,
               const format::Program &program)
      : library(library), mutex(mutex), program(program) {}

  void setWorkspace(void *address, size_t bytes) {
    workspace = address;
    workspaceBytes = bytes;
  }

  /// False if the launch is not a library's: its kernel has to run.
  Result<bool> launch(const KernelLaunch &launch, const format::Entry &entry,
                      StreamHandle stream);

  /// Whether plans should be dropped some time: graphs and work under way may
  /// use them.
  bool isFull() const;
  void clear() { plans.clear(); }

private:
  struct Key {
    uint32_t kernel;
    decltype(LaunchDescription::work) work;
    auto operator<=>(const Key &) const = default;
  };

  Library *library;
  std::mutex &mutex; ///< of the library, which others use, too
  const format::Program &program;
  void *workspace = nullptr;
  size_t workspaceBytes = 0;
  std::map<Key, std::unique_ptr<LibraryPlan>> plans; ///< null: has none
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_LIBRARYCALLS_H
