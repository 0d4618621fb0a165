#include "runtime/executor/PlanEntry.h"

#include "runtime/package/Commands.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

/// The buffer that a chain of views begins with.
static const format::Buffer &rootOf(const format::Entry &entry,
                                    uint32_t index) {
  const format::Buffer *buffer = entry.buffers()->Get(index);
  while (buffer->base() >= 0)
    buffer = entry.buffers()->Get(buffer->base());
  return *buffer;
}

static bool mayOverlap(const format::Buffer &a, const format::Buffer &b) {
  if (a.storage() != b.storage())
    return false;
  // A state that is not updated in place is in two places.
  auto isApart = [](const format::Buffer &buffer) {
    return buffer.next() && !buffer.in_place();
  };
  if (a.storage() != format::StorageClass::scratch)
    return a.index() == b.index() && isApart(a) == isApart(b);
  return a.offset() < b.offset() + b.max_bytes() &&
         b.offset() < a.offset() + a.max_bytes();
}

namespace {

struct Planner {
  const format::Entry &entry;
  EntryPlan &plan;
  size_t lane;
  bool isAlone;

  uint64_t roomOf(uint32_t buffer) const {
    return entry.buffers()->Get(buffer)->max_bytes();
  }

  void operator()(const format::Launch &launch) const {
    std::vector<uint64_t> &rooms = plan.rooms.back();
    for (size_t i = 0; launch.buffers() && i < launch.buffers()->size(); ++i)
      rooms.push_back(roomOf(launch.buffers()->Get(i)));
    size_t sizes = launch.sizes() ? launch.sizes()->size() : 0;
    plan.buffers = std::max(plan.buffers, rooms.size());
    plan.sizes = std::max(plan.sizes, sizes);
    plan.faulting += launch.fault();
    plan.candidates += launch.candidates() ? launch.candidates()->size() : 0;
    plan.launchingLanes = std::max(plan.launchingLanes, lane + 1);
    work();
  }
  void operator()(const format::Copy &copy) const {
    work();
    move(copy.from(), copy.to());
  }
  /// One rank copies what is not in place.
  void operator()(const Collective auto &collective) const {
    bool isInPlace = collective.from() == collective.to();
    ++plan.collectives;
    plan.treeSums += addsInTree(collective);
    if (!isInPlace && !isOwnPart(collective))
      move(collective.from(), collective.to());
    if (!isInPlace || !isAlone)
      work();
  }
  void operator()(const format::SetSize &) const {}
  void operator()(const format::ReadSize &) const {}
  void operator()(const format::If &) const {}
  void operator()(const format::Loop &) const {}
  void operator()(const format::RecordEvent &) const {}
  void operator()(const format::WaitEvent &) const {}
  void operator()(const UnknownCommand &) const {}

  /// The one buffer lies in the other one.
  template <typename Table> bool isOwnPart(const Table &table) const {
    return movesParts<Table> &&
           &rootOf(entry, table.from()) == &rootOf(entry, table.to());
  }
  void work() const { plan.lanes = std::max(plan.lanes, lane + 1); }
  void move(uint32_t from, uint32_t to) const {
    if (mayOverlap(rootOf(entry, from), rootOf(entry, to)))
      plan.shifted = std::max(plan.shifted, std::min(roomOf(from), roomOf(to)));
  }
};

} // namespace

EntryPlan runtime::planEntry(const format::Entry &entry, bool isAlone) {
  EntryPlan plan;
  plan.workerScratchBytes = entry.worker_scratch_bytes();
  plan.workspaceBytes = entry.workspace_bytes();
  plan.events = entry.event_count();
  forEachCommand(*entry.body(), [&](const format::Command &command) {
    plan.rooms.emplace_back();
    visitCommand(command, Planner{entry, plan, command.lane(), isAlone});
  });
  return plan;
}
