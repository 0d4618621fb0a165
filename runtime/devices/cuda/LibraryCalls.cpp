#include "runtime/devices/cuda/LibraryCalls.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// Sizes change from run to run.
static constexpr size_t kMaxPlans = 4096;

bool LibraryCalls::isFull() const { return plans.size() >= kMaxPlans; }

Result<bool> LibraryCalls::launch(const KernelLaunch &launch,
                                  const format::Entry &entry,
                                  StreamHandle stream) {
  uint32_t kernel = launch.command.kernel();
  if (!library)
    return false;
  auto described =
      describeLaunch(launch, entry, *program.kernels()->Get(kernel));
  if (!described.ok())
    return described.takeStatus();
  if (!*described)
    return false;
  auto &[work, operands] = **described;
  std::lock_guard lock(mutex);
  auto [found, isNew] = plans.try_emplace({kernel, work});
  if (isNew) {
    auto plan = std::visit(
        [&](const auto &one) {
          return library->plan(one, workspace, workspaceBytes);
        },
        work);
    if (!plan.ok()) {
      plans.erase(found);
      return plan.takeStatus();
    }
    found->second = std::move(*plan);
  }
  LibraryPlan *plan = found->second.get();
  if (!plan)
    return false;
  if (Status status = plan->enqueue(operands, stream); !status.ok())
    return status;
  return true;
}
