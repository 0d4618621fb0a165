//===- LibraryCalls.h - Launches that a library does instead ----*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_LIBRARYCALLS_H
#define TCC_RUNTIME_DEVICES_CUDA_LIBRARYCALLS_H

#include "runtime/devices/cuda/CudaDevice.h"

#include <map>

namespace tcc::runtime::cuda {

/// Gives launches to a library where it has them. How is chosen the first time
/// that a kernel meets sizes and alignments, and kept.
class LibraryCalls {
public:
  /// Device and workspace live longer.
  LibraryCalls(CudaDevice &device, std::span<const EntryPlan> entries);

  void setWorkspace(std::span<std::byte> memory) { workspace = memory; }

  /// What a library could be asked to do for the launch.
  Result<std::optional<LaunchDescription>> describe(const Dispatch &dispatch,
                                                    const Run &run) const;
  /// False if no library does it: the kernel has to run.
  Result<bool> launch(const LaunchDescription &described, uint32_t kernel,
                      StreamHandle stream);

  /// Whether plans should be dropped some time: graphs and work under way may
  /// use them.
  bool isFull() const;
  void clear() { plans.clear(); }

private:
  struct Key {
    uint32_t kernel;
    LibraryWork work;
    auto operator<=>(const Key &) const = default;
  };

  Result<std::unique_ptr<LibraryPlan>> plan(const LibraryWork &work) const;

  CudaDevice &device;
  /// The EntryPlan::rooms of each entry, by command.
  std::vector<std::vector<std::vector<uint64_t>>> rooms;
  std::span<std::byte> workspace;
  std::map<Key, std::unique_ptr<LibraryPlan>> plans; ///< null: has none
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_LIBRARYCALLS_H
