#include "runtime/executor/Walker.h"

#include "runtime/package/Commands.h"
#include "runtime/package/DType.h"
#include "runtime/package/Names.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using format::StorageClass;

static std::string_view nameNode(const flatbuffers::String *node) {
  return node ? node->string_view() : std::string_view("?");
}

template <typename T>
static size_t countOf(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

/// The command that comes after it in its block has the number plus as many.
static uint32_t countCommands(const format::Command &command) {
  uint32_t count = 1;
  forEachBlock(command, [&](const format::Block &block) {
    for (const format::Command *inner : *block.commands())
      count += countCommands(*inner);
  });
  return count;
}

Walker::Walker(const format::Program &program, const format::Entry &entry,
               std::shared_ptr<Workspace> shared)
    : entry(entry), workspace(std::move(shared)), stream(*workspace->stream) {
  slotValues.resize(entry.slot_count());
  current.entry = std::ranges::find(workspace->entries, &entry) -
                  workspace->entries.begin();
  current.mayReplay = !readsBuffers(*entry.body());
  current.sizes = slotValues;
  current.symbols = program.symbols() ? program.symbols()->size() : 0;
  size_t buffers = 0, sizes = 0;
  forEachCommand(*entry.body(), [&](const format::Command &command) {
    commands.push_back(&command);
    extents.push_back(countCommands(command));
  });
  forEachLaunch(*entry.body(), [&](const format::Launch &launch) {
    buffers = std::max<size_t>(buffers, countOf(launch.buffers()));
    sizes = std::max<size_t>(sizes, countOf(launch.sizes()));
  });
  arguments.resize(buffers);
  sizeArguments.resize(sizes);
  place();
}

void Walker::place() {
  stateBuffers.resize(entry.states() ? entry.states()->size() : 0);
  placed.resize(entry.buffers()->size());
  for (uint32_t i = 0; i < placed.size(); ++i) {
    const format::Buffer &buffer = *entry.buffers()->Get(i);
    if (buffer.base() >= 0)
      continue;
    if (buffer.storage() == StorageClass::scratch)
      placed[i] = workspace->arena.data() + buffer.offset();
    if (buffer.storage() == StorageClass::state)
      stateBuffers[buffer.index()].push_back(i);
  }
  current.addresses = placed;
}

void Walker::setObserver(LaunchObserver *newObserver) {
  observer = newObserver;
  current.mayReplay = !observer && !readsBuffers(*entry.body());
}

void Walker::bind(StorageClass storage, uint32_t index, void *address) {
  for (uint32_t i = 0; i < placed.size(); ++i) {
    const format::Buffer &buffer = *entry.buffers()->Get(i);
    if (buffer.storage() == storage && buffer.index() == index &&
        buffer.base() < 0)
      placed[i] = static_cast<std::byte *>(address);
  }
}

void Walker::bindState(uint32_t index, void *current, void *next) {
  for (uint32_t i : stateBuffers[index])
    placed[i] = static_cast<std::byte *>(
        entry.buffers()->Get(i)->next() ? next : current);
}

std::vector<std::span<std::byte>> Walker::workingSet() const {
  std::vector<std::span<std::byte>> used;
  if (!slotValues.empty())
    return used;
  std::vector<bool> isListed(placed.size());
  auto add = [&](int64_t index) {
    while (entry.buffers()->Get(index)->base() >= 0)
      index = entry.buffers()->Get(index)->base();
    const format::Buffer &buffer = *entry.buffers()->Get(index);
    bool isOurs = buffer.storage() == StorageClass::scratch ||
                  buffer.storage() == StorageClass::variable;
    if (isOurs && !isListed[index])
      used.push_back({placed[index], buffer.max_bytes()});
    isListed[index] = true;
  };
  for (const format::Command *command : *entry.body()->commands())
    forEachBuffer(*command, add);
  return used;
}

Status Walker::sizeOf(const format::SizeExpr &expr, int64_t &value) const {
  if (evaluate(expr, slotValues.data(), value))
    return Status();
  return makeError(Code::BadData, "a size expression of entry '", nameOf(entry),
                   "' overflows");
}

/// Follows a chain of views; offsets may depend on loops, so they are computed
/// at each use.
Status Walker::addressOf(uint32_t buffer, std::byte *&address) const {
  int64_t offset = 0;
  const format::Buffer *place = entry.buffers()->Get(buffer);
  while (place->base() >= 0) {
    int64_t step = 0;
    if (Status status = sizeOf(*place->view_offset(), step); !status.ok())
      return status;
    offset += step;
    uint64_t bytes = place->max_bytes();
    buffer = place->base();
    place = entry.buffers()->Get(buffer);
    // Verified: the view is not larger than its base.
    if (step < 0 || static_cast<uint64_t>(step) > place->max_bytes() - bytes)
      return makeError(Code::BadData, "a view of ", bytes, " bytes at byte ",
                       step, " lies outside a buffer of ", place->max_bytes());
  }
  address = placed[buffer] + offset;
  return Status();
}

/// Gives the command to the device, or does it.
struct Walker::Visitor {
  Walker &walker;
  Place place;

  Status operator()(const format::Launch &launch) const {
    return walker.launch(launch, place);
  }
  Status operator()(const format::Copy &copy) const {
    return walker.copy(copy, place);
  }
  Status operator()(const format::SetSize &set) const {
    return walker.setSize(set);
  }
  Status operator()(const format::ReadSize &read) const {
    return walker.readSize(read);
  }
  Status operator()(const format::If &branch) const {
    return walker.branch(branch, place.number);
  }
  Status operator()(const format::Loop &loop) const {
    return walker.loop(loop, place.number);
  }
  Status operator()(const format::RecordEvent &record) const {
    return walker.stream.record({place.number, place.lane, record.event()});
  }
  Status operator()(const format::WaitEvent &wait) const {
    return walker.stream.await({place.number, place.lane, wait.event()});
  }
  Status operator()(const Collective auto &) const { return refuse(); }
  Status operator()(const UnknownCommand &) const { return refuse(); }

  static Status refuse() {
    return Status(Code::Internal, "an unverified command");
  }
};

Status Walker::runBlock(const format::Block &block, uint32_t first) {
  uint32_t number = first;
  for (const format::Command *command : *block.commands()) {
    Visitor visitor = {*this, {number, command->lane()}};
    if (Status status = visitCommand(*command, visitor); !status.ok())
      return status;
    number += extents[number];
  }
  return Status();
}

Status Walker::walk() {
  Result<bool> isGiven = stream.begin(current);
  if (!isGiven.ok())
    return isGiven.takeStatus();
  if (*isGiven)
    return Status();
  return checkFault(stream.end(current, runBlock(*entry.body(), 0)));
}

/// An error of a device that has seen a bad index is that index.
Status Walker::checkFault(Status status) const {
  if (!current.fault)
    return status;
  const format::Launch &launch =
      *commands[current.fault->command]->action_as_Launch();
  return makeError(Code::Usage, "node '", nameNode(launch.node()), "': index ",
                   current.fault->index, " is out of range");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

Status Walker::launch(const format::Launch &launch, Place place) {
  Dispatch call = {.command = place.number,
                   .lane = place.lane,
                   .kernel = launch.kernel(),
                   .mayFault = launch.fault(),
                   .tasks = 0,
                   .buffers = {},
                   .sizes = {}};
  if (Status status = sizeOf(*launch.tasks(), call.tasks); !status.ok())
    return status;
  size_t count = countOf(launch.buffers());
  for (size_t i = 0; i < count; ++i) {
    std::byte *address = nullptr;
    if (Status status = addressOf(launch.buffers()->Get(i), address);
        !status.ok())
      return status;
    arguments[i] = address;
  }
  size_t sizeCount = countOf(launch.sizes());
  for (size_t i = 0; i < sizeCount; ++i)
    if (Status status = sizeOf(*launch.sizes()->Get(i), sizeArguments[i]);
        !status.ok())
      return status;
  call.buffers = std::span(arguments).first(count);
  call.sizes = std::span(sizeArguments).first(sizeCount);
  if (call.tasks > 1 || stream.isTraced()) {
    call.flops = workOf(launch.flops());
    call.bytes = workOf(launch.bytes());
  }
  return dispatch(launch, call);
}

/// -1 if it is not known.
int64_t Walker::workOf(const format::SizeExpr *expr) const {
  int64_t amount = 0;
  return expr && evaluate(*expr, slotValues.data(), amount) ? amount : -1;
}

Status Walker::dispatch(const format::Launch &launch, const Dispatch &call) {
  Status status;
  if (observer)
    status = stream.wait();
  if (observer && status.ok())
    status = observer->before(launch, call.buffers);
  if (!status.ok())
    return status;
  status = stream.dispatch(call);
  if (!status.ok())
    return makeError(status.code(), "node '", nameNode(launch.node()),
                     "': ", status.message());
  if (observer)
    status = stream.wait();
  if (observer || call.mayFault)
    status = checkFault(std::move(status));
  return observer && status.ok() ? observer->after(launch, call.buffers)
                                 : std::move(status);
}

//===----------------------------------------------------------------------===//
// Everything else
//===----------------------------------------------------------------------===//

Status Walker::copy(const format::Copy &copy, Place place) {
  int64_t bytes = 0;
  std::byte *from = nullptr, *to = nullptr;
  if (Status status = sizeOf(*copy.bytes(), bytes); !status.ok())
    return status;
  if (Status status = addressOf(copy.from(), from); !status.ok())
    return status;
  if (Status status = addressOf(copy.to(), to); !status.ok())
    return status;
  uint64_t room = std::min(entry.buffers()->Get(copy.from())->max_bytes(),
                           entry.buffers()->Get(copy.to())->max_bytes());
  if (bytes < 0 || static_cast<uint64_t>(bytes) > room)
    return makeError(Code::BadData, "a copy of ", bytes,
                     " bytes does not fit a buffer of ", room);
  if (from == to)
    return Status();
  return stream.transfer(
      {place.number, place.lane, to, from, static_cast<size_t>(bytes)});
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
  if (Status status =
          checkFault(stream.read(&bits, address, traitsOf(read.dtype()).bytes));
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
  Status status = checkFault(stream.read(&condition, address, 1));
  isTrue = condition != std::byte(0);
  return status;
}

Status Walker::branch(const format::If &branch, uint32_t number) {
  bool isTrue = false;
  if (Status status = readCondition(branch.condition(), isTrue); !status.ok())
    return status;
  uint32_t first = number + 1;
  if (isTrue)
    return runBlock(*branch.then_block(), first);
  for (size_t i = 0; i < branch.then_block()->commands()->size(); ++i)
    first += extents[first];
  return runBlock(*branch.else_block(), first);
}

Status Walker::loop(const format::Loop &loop, uint32_t number) {
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
    if (Status status = runBlock(*loop.body(), number + 1); !status.ok())
      return status;
  }
  return Status();
}
