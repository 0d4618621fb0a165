#include "runtime/devices/cuda/LibraryCalls.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// Sizes change from run to run: plans of old ones are dropped some time.
static constexpr size_t kMaxPlans = 4096;
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
  bool isDone = plan != nullptr;
  Status status = isDone ? plan->enqueue(operands, stream) : Status();
  if (plans.size() > kMaxPlans)
    plans.clear();
  if (!status.ok())
    return status;
  return isDone;
}
