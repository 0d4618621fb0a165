//===- Workspace.h - What walks of one caller share -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_WORKSPACE_H
#define TCC_RUNTIME_EXECUTOR_WORKSPACE_H

#include "runtime/devices/Device.h"
#include "runtime/package/Program_generated.h"

namespace tcc::runtime {

/// The arena and the stream; shared by walkers of which one runs at a time.
struct Workspace {
  Memory arena; ///< of the device
  std::unique_ptr<Stream> stream;
  std::vector<const format::Entry *> entries; ///< those that it is for
  std::vector<size_t> lanes; ///< of each of them that do something
  int ranks = 1;             ///< that run the entries together
  int rank = 0;              ///< of them, this one

  /// Enough for each of the entries. The device outlives it.
  static Result<std::shared_ptr<Workspace>>
  create(Device &device, std::span<const format::Entry *const> entries,
         const StreamOptions &options);

  void addPlanned(PlannedMemory &planned) const {
    planned.arena += arena.size();
    stream->addPlanned(planned);
  }
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_WORKSPACE_H
