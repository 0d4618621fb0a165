#include "runtime/executor/Walker.h"

#include "runtime/package/Commands.h"
#include "runtime/package/DType.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using format::StorageClass;

Walker::Walker(const format::Program &program, const format::Entry &entry,
               std::shared_ptr<Workspace> shared)
    : workspace(std::move(shared)), stream(*workspace->stream) {
  this->entry = &entry;
  mayReplay = !readsBuffers(*entry.body());
  symbols = program.symbols() ? program.symbols()->size() : 0;
  slotValues.resize(entry.slot_count());
  sizes = slotValues;
  LaunchLimits limits = measureLaunches(entry);
  arguments.resize(limits.buffers);
  sizeArguments.resize(limits.sizes);
  place();
}

void Walker::place() {
  stateBuffers.resize(entry->states() ? entry->states()->size() : 0);
  placed.resize(entry->buffers()->size());
  for (uint32_t i = 0; i < placed.size(); ++i) {
    const format::Buffer &buffer = *entry->buffers()->Get(i);
    if (buffer.base() >= 0)
      continue;
    if (buffer.storage() == StorageClass::scratch)
      placed[i] = workspace->arena.data() + buffer.offset();
    if (buffer.storage() == StorageClass::state)
      stateBuffers[buffer.index()].push_back(i);
  }
  addresses = placed;
}

void Walker::setObserver(LaunchObserver *newObserver) {
  observer = newObserver;
  mayReplay = !observer && !readsBuffers(*entry->body());
}

void Walker::bind(StorageClass storage, uint32_t index, void *address) {
  for (uint32_t i = 0; i < placed.size(); ++i) {
    const format::Buffer &buffer = *entry->buffers()->Get(i);
    if (buffer.storage() == storage && buffer.index() == index &&
        buffer.base() < 0)
      placed[i] = static_cast<std::byte *>(address);
  }
}

void Walker::bindState(uint32_t index, void *current, void *next) {
  for (uint32_t i : stateBuffers[index])
    placed[i] = static_cast<std::byte *>(
        entry->buffers()->Get(i)->next() ? next : current);
}

std::vector<std::span<std::byte>> Walker::workingSet() const {
  std::vector<std::span<std::byte>> used;
  if (!slotValues.empty())
    return used;
  std::vector<bool> isListed(placed.size());
  auto add = [&](int64_t index) {
    while (entry->buffers()->Get(index)->base() >= 0)
      index = entry->buffers()->Get(index)->base();
    const format::Buffer &buffer = *entry->buffers()->Get(index);
    bool isOurs = buffer.storage() == StorageClass::scratch ||
                  buffer.storage() == StorageClass::variable;
    if (isOurs && !isListed[index])
      used.push_back({placed[index], buffer.max_bytes()});
    isListed[index] = true;
  };
  for (const format::Command *command : *entry->body()->commands())
    forEachBuffer(*command, add);
  return used;
}

Status Walker::sizeOf(const format::SizeExpr &expr, int64_t &value) const {
  if (evaluate(expr, slotValues.data(), value))
    return Status();
  return makeError(Code::BadData, "a size expression of entry '",
                   entry->name()->string_view(), "' overflows");
}

/// Follows a chain of views; offsets may depend on loops, so they are computed
/// at each use.
Status Walker::addressOf(uint32_t buffer, std::byte *&address) const {
  int64_t offset = 0;
  const format::Buffer *place = entry->buffers()->Get(buffer);
  while (place->base() >= 0) {
    int64_t step = 0;
    if (Status status = sizeOf(*place->view_offset(), step); !status.ok())
      return status;
    offset += step;
    uint64_t bytes = place->max_bytes();
    buffer = place->base();
    place = entry->buffers()->Get(buffer);
    // Verified: the view is not larger than its base.
    if (step < 0 || static_cast<uint64_t>(step) > place->max_bytes() - bytes)
      return makeError(Code::BadData, "a view of ", bytes, " bytes at byte ",
                       step, " lies outside a buffer of ", place->max_bytes());
  }
  address = placed[buffer] + offset;
  return Status();
}

/// Runs a command.
struct Walker::Visitor {
  Walker &walker;

  Status operator()(const format::Launch &launch) const {
    return walker.launch(launch);
  }
  Status operator()(const format::Copy &copy) const {
    return walker.copy(copy);
  }
  Status operator()(const format::SetSize &set) const {
    return walker.setSize(set);
  }
  Status operator()(const format::ReadSize &read) const {
    return walker.readSize(read);
  }
  Status operator()(const format::If &branch) const {
    return walker.branch(branch);
  }
  Status operator()(const format::Loop &loop) const {
    return walker.loop(loop);
  }
  Status operator()(const format::RecordEvent &) const { return refuse(); }
  Status operator()(const format::WaitEvent &) const { return refuse(); }
  Status operator()(const Collective auto &) const { return refuse(); }
  Status operator()(const UnknownCommand &) const { return refuse(); }

  static Status refuse() {
    return Status(Code::Internal, "an unverified command");
  }
};

Status Walker::runBlock(const format::Block &block) {
  for (const format::Command *command : *block.commands()) {
    if (command->lane() > 0)
      return Status(Code::Internal, "an unverified lane");
    if (Status status = visitCommand(*command, Visitor{*this}); !status.ok())
      return status;
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Status Walker::launch(const format::Launch &launch) {
  int64_t tasks = 0;
  if (Status status = sizeOf(*launch.tasks(), tasks); !status.ok())
    return status;
  size_t count = launch.buffers() ? launch.buffers()->size() : 0;
  for (size_t i = 0; i < count; ++i) {
    std::byte *address = nullptr;
    if (Status status = addressOf(launch.buffers()->Get(i), address);
        !status.ok())
      return status;
    arguments[i] = address;
  }
  size_t sizeCount = launch.sizes() ? launch.sizes()->size() : 0;
  for (size_t i = 0; i < sizeCount; ++i)
    if (Status status = sizeOf(*launch.sizes()->Get(i), sizeArguments[i]);
        !status.ok())
      return status;
  KernelLaunch call = {launch, tasks, std::span(arguments).first(count),
                       std::span(sizeArguments).first(sizeCount), slotValues};
  return observer ? observeLaunch(call) : stream.launch(call);
}

Status Walker::observeLaunch(const KernelLaunch &launch) {
  if (Status status = observer->before(launch.command, launch.buffers);
      !status.ok())
    return status;
  if (Status status = stream.launch(launch); !status.ok())
    return status;
  if (Status status = stream.wait(); !status.ok())
    return status;
  return observer->after(launch.command, launch.buffers);
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

Status Walker::copy(const format::Copy &copy) {
  int64_t bytes = 0;
  std::byte *from = nullptr, *to = nullptr;
  if (Status status = sizeOf(*copy.bytes(), bytes); !status.ok())
    return status;
  if (Status status = addressOf(copy.from(), from); !status.ok())
    return status;
  if (Status status = addressOf(copy.to(), to); !status.ok())
    return status;
  uint64_t room = std::min(entry->buffers()->Get(copy.from())->max_bytes(),
                           entry->buffers()->Get(copy.to())->max_bytes());
  if (bytes < 0 || static_cast<uint64_t>(bytes) > room)
    return makeError(Code::BadData, "a copy of ", bytes,
                     " bytes does not fit a buffer of ", room);
  return from != to ? stream.copy(to, from, bytes) : Status();
}

Status Walker::setSize(const format::SetSize &set) {
  return sizeOf(*set.value(), slotValues[set.slot()]);
}

/// The integer or boolean whose bytes are the first of `bits`.
static int64_t extend(DType dtype, uint64_t bits) {
  const DTypeTraits &traits = traitsOf(dtype);
  unsigned unused = 64 - 8 * traits.bytes;
  if (traits.kind == DTypeKind::Signed)
    return static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int64_t>(bits);
}

Status Walker::readSize(const format::ReadSize &read) {
  std::byte *address = nullptr;
  if (Status status = addressOf(read.buffer(), address); !status.ok())
    return status;
  uint64_t bits = 0;
  if (Status status = stream.read(&bits, address, traitsOf(read.dtype()).bytes);
      !status.ok())
    return status;
  int64_t value = extend(read.dtype(), bits);
  if (value < read.min() || value > read.max())
    return makeError(Code::Usage, "node '", nameNode(read.node()), "': size ",
                     value, " is outside [", read.min(), ", ", read.max(), "]");
  slotValues[read.slot()] = value;
  return Status();
}

Status Walker::readCondition(uint32_t buffer, bool &isTrue) {
  std::byte *address = nullptr, condition = {};
  if (Status status = addressOf(buffer, address); !status.ok())
    return status;
  Status status = stream.read(&condition, address, 1);
  isTrue = condition != std::byte(0);
  return status;
}

Status Walker::branch(const format::If &branch) {
  bool isTrue = false;
  if (Status status = readCondition(branch.condition(), isTrue); !status.ok())
    return status;
  return runBlock(isTrue ? *branch.then_block() : *branch.else_block());
}

Status Walker::loop(const format::Loop &loop) {
  int64_t trips = INT64_MAX;
  if (loop.trips())
    if (Status status = sizeOf(*loop.trips(), trips); !status.ok())
      return status;
  int64_t &iteration = slotValues[loop.iteration()];
  for (iteration = 0; iteration < trips; ++iteration) {
    bool isTrue = true;
    if (loop.condition() >= 0)
      if (Status status = readCondition(loop.condition(), isTrue); !status.ok())
        return status;
    if (!isTrue)
      return Status();
    if (iteration >= loop.max_trips())
      return makeError(Code::Usage, "node '", nameNode(loop.node()),
                       "': the loop runs more than ", loop.max_trips(),
                       " times");
    if (Status status = runBlock(*loop.body()); !status.ok())
      return status;
  }
  return Status();
}
