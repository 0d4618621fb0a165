#include "runtime/devices/cuda/LibraryCalls.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// Sizes change from run to run.
static constexpr size_t kMaxPlans = 4096;

bool LibraryCalls::isFull() const { return plans.size() >= kMaxPlans; }

LibraryCalls::LibraryCalls(CudaDevice &device,
                           std::span<const EntryPlan> entries)
    : device(device) {
  if (device.libraries())
    for (const EntryPlan &entry : entries)
      rooms.push_back(entry.rooms);
}

Result<std::optional<LaunchDescription>>
LibraryCalls::describe(const Dispatch &dispatch, const Run &run) const {
  if (!device.libraries())
    return std::optional<LaunchDescription>();
  return describeLaunch(dispatch, rooms[run.entry][dispatch.command], run.sizes,
                        *device.program().kernels()->Get(dispatch.kernel));
}

/// The fastest way that is known, or the library's first; null for a kernel.
Result<std::unique_ptr<LibraryPlan>>
LibraryCalls::plan(const LibraryWork &work) const {
  size_t way = 0;
  if (device.tunings().size() > 0)
    if (const Tuning *known =
            device.tunings().find(device.nameWork(work, workspace.size()))) {
      if (known->way == Tuning::kKernel)
        return std::unique_ptr<LibraryPlan>();
      way = static_cast<size_t>(known->way);
    }
  return device.libraries()->plan(work, workspace.data(), workspace.size(),
                                  way);
}

Result<bool> LibraryCalls::launch(const LaunchDescription &described,
                                  uint32_t kernel, StreamHandle stream) {
  std::lock_guard lock(device.libraryMutex());
  auto [found, isNew] = plans.try_emplace({kernel, described.work});
  if (isNew) {
    auto plan = this->plan(described.work);
    if (!plan.ok()) {
      plans.erase(found);
      return plan.takeStatus();
    }
    found->second = std::move(*plan);
  }
  LibraryPlan *plan = found->second.get();
  if (!plan)
    return false;
  if (Status status = plan->enqueue(described.operands, stream); !status.ok())
    return status;
  return true;
}
