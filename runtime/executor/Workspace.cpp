#include "runtime/executor/Workspace.h"

#include "runtime/executor/PlanEntry.h"
#include "runtime/ranks/Communicator.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

Result<std::shared_ptr<Workspace>>
Workspace::create(Device &device, std::span<const format::Entry *const> entries,
                  const StreamOptions &options) {
  auto workspace = std::make_shared<Workspace>();
  workspace->entries.assign(entries.begin(), entries.end());
  if (options.communicator) {
    workspace->ranks = options.communicator->size();
    workspace->rank = options.communicator->rank();
  }
  std::vector<EntryPlan> plans;
  for (const format::Entry *entry : entries)
    plans.push_back(planEntry(*entry, workspace->ranks == 1));
  for (const EntryPlan &plan : plans)
    workspace->lanes.push_back(plan.lanes);
  auto stream = device.createStream(plans, options);
  if (!stream.ok())
    return stream.takeStatus();
  workspace->stream = std::move(*stream);
  size_t bytes = 0;
  for (const format::Entry *entry : entries)
    bytes = std::max<size_t>(bytes, entry->scratch_bytes());
  auto arena =
      Memory::allocate(bytes, device.allocator(options.allocator), "the arena");
  if (!arena.ok())
    return arena.takeStatus();
  workspace->arena = std::move(*arena);
  return workspace;
}
