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
  if (entry.rank_slot() >= 0)
    slotValues[entry.rank_slot()] = workspace->rank;
  current.entry = std::ranges::find(workspace->entries, &entry) -
                  workspace->entries.begin();
  current.mayReplay = !readsBuffers(*entry.body());
  current.sizes = slotValues;
  current.symbols = program.symbols() ? program.symbols()->size() : 0;
  size_t buffers = 0, sizes = 0, candidates = 0;
  forEachCommand(*entry.body(), [&](const format::Command &command) {
    steps.push_back({&command, countCommands(command)});
  });
  forEachLaunch(*entry.body(), [&](const format::Launch &launch) {
    buffers = std::max<size_t>(buffers, countOf(launch.buffers()));
    sizes = std::max<size_t>(sizes, countOf(launch.sizes()));
    candidates = std::max<size_t>(candidates, countOf(launch.candidates()));
  });
  arguments.resize(buffers);
  varying.buffers.reserve(buffers);
  varying.sizes.reserve(sizes);
  varying.alternatives.reserve(candidates);
  place();
  fixLaunches();
}

/// What a lane that does nothing is to wait for, or is waited for, lane 0 has
/// done when it comes there.
uint32_t Walker::laneOf(const format::Command &command) const {
  return command.lane() < workspace->lanes[current.entry] ? command.lane() : 0;
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
  if (slotValues.size() > (entry.rank_slot() >= 0 ? 1 : 0))
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

/// Follows a chain of views; offsets may depend on loops.
Status Walker::locate(uint32_t buffer, Location &location) const {
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
  location = {buffer, offset};
  return Status();
}

Status Walker::addressOf(uint32_t buffer, std::byte *&address) const {
  Location location;
  Status status = locate(buffer, location);
  if (status.ok())
    address = placed[location.root] + location.offset;
  return status;
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
  Status operator()(const Collective auto &collective) const {
    return walker.exchange(collective, place);
  }
  Status operator()(const UnknownCommand &) const {
    return Status(Code::Internal, "an unverified command");
  }
};

Status Walker::runBlock(const format::Block &block, uint32_t first) {
  uint32_t number = first;
  for (const format::Command *command : *block.commands()) {
    const Step &step = steps[number];
    Status status =
        step.fixedLaunch >= 0
            ? dispatch(fixedLaunches[step.fixedLaunch])
            : visitCommand(*command,
                           Visitor{*this, {number, laneOf(*command)}});
    if (!status.ok())
      return status;
    number += step.extent;
  }
  return Status();
}

Status Walker::walk() {
  current.flops = 0;
  Result<bool> isGiven = stream.begin(current);
  if (!isGiven.ok())
    return isGiven.takeStatus();
  if (*isGiven)
    return Status();
  try {
    return checkFault(stream.end(current, runBlock(*entry.body(), 0)));
  } catch (...) { // of a caller's pool: lanes still do what they were given
    (void)stream.end(current, Status(Code::Internal, "a hook threw"));
    throw;
  }
}

/// An error of a device that has seen a bad index is that index.
Status Walker::checkFault(Status status) const {
  if (!current.fault)
    return status;
  const format::Launch &launch =
      *steps[current.fault->command].command->action_as_Launch();
  return makeError(Code::Usage, "node '", nameNode(launch.node()), "': index ",
                   current.fault->index, " is out of range");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

/// The launch with the slots as they are.
Status Walker::measure(const format::Launch &launch, Place place,
                       SizedLaunch &sized) const {
  sized.launch = &launch;
  sized.dispatch = {.command = place.number,
                    .lane = place.lane,
                    .kernel = launch.kernel(),
                    .mayFault = launch.fault(),
                    .tasks = 0,
                    .buffers = {},
                    .sizes = {}};
  if (Status status = sizeOf(*launch.tasks(), sized.dispatch.tasks);
      !status.ok())
    return status;
  sized.buffers.resize(countOf(launch.buffers()));
  for (size_t i = 0; i < sized.buffers.size(); ++i)
    if (Status status = locate(launch.buffers()->Get(i), sized.buffers[i]);
        !status.ok())
      return status;
  sized.sizes.resize(countOf(launch.sizes()));
  for (size_t i = 0; i < sized.sizes.size(); ++i)
    if (Status status = sizeOf(*launch.sizes()->Get(i), sized.sizes[i]);
        !status.ok())
      return status;
  sized.dispatch.sizes = sized.sizes;
  sized.alternatives.resize(countOf(launch.candidates()));
  for (size_t i = 0; i < sized.alternatives.size(); ++i) {
    const format::Candidate &candidate = *launch.candidates()->Get(i);
    sized.alternatives[i].kernel = candidate.kernel();
    if (Status status = sizeOf(*candidate.tasks(), sized.alternatives[i].tasks);
        !status.ok())
      return status;
  }
  sized.dispatch.alternatives = sized.alternatives;
  return Status();
}

/// -1 where it is not known.
void Walker::measureWork(SizedLaunch &sized) const {
  auto workOf = [&](const format::SizeExpr *expr) {
    int64_t amount = 0;
    return expr && evaluate(*expr, slotValues.data(), amount) ? amount : -1;
  };
  sized.dispatch.flops = workOf(sized.launch->flops());
  sized.dispatch.bytes = workOf(sized.launch->bytes());
}

bool Walker::isFixed(const format::Launch &launch) const {
  auto isConstant = [&](const format::SizeExpr *expr) {
    return !expr || readsOnlySlot(*expr, entry.rank_slot());
  };
  for (size_t i = 0; i < countOf(launch.sizes()); ++i)
    if (!isConstant(launch.sizes()->Get(i)))
      return false;
  for (size_t i = 0; i < countOf(launch.buffers()); ++i)
    for (const format::Buffer *buffer =
             entry.buffers()->Get(launch.buffers()->Get(i));
         buffer->base() >= 0; buffer = entry.buffers()->Get(buffer->base()))
      if (!isConstant(buffer->view_offset()))
        return false;
  for (size_t i = 0; i < countOf(launch.candidates()); ++i)
    if (!isConstant(launch.candidates()->Get(i)->tasks()))
      return false;
  return isConstant(launch.tasks()) && isConstant(launch.flops()) &&
         isConstant(launch.bytes());
}

/// What cannot be measured stays as it is: a run that meets it says why.
void Walker::fixLaunches() {
  for (uint32_t number = 0; number < steps.size(); ++number) {
    Step &step = steps[number];
    const format::Launch *launch = step.command->action_as_Launch();
    SizedLaunch sized;
    if (!launch || !isFixed(*launch) ||
        !measure(*launch, {number, laneOf(*step.command)}, sized).ok())
      continue;
    measureWork(sized);
    step.fixedLaunch = static_cast<int32_t>(fixedLaunches.size());
    fixedLaunches.push_back(std::move(sized));
  }
}

Status Walker::launch(const format::Launch &launch, Place place) {
  if (Status status = measure(launch, place, varying); !status.ok())
    return status;
  if (varying.dispatch.tasks > 1 || !varying.alternatives.empty() ||
      stream.isTraced() || countsFlops)
    measureWork(varying);
  return dispatch(varying);
}

Status Walker::dispatch(SizedLaunch &sized) {
  const format::Launch &launch = *sized.launch;
  Dispatch &call = sized.dispatch;
  for (size_t i = 0; i < sized.buffers.size(); ++i)
    arguments[i] = placed[sized.buffers[i].root] + sized.buffers[i].offset;
  call.buffers = std::span(arguments).first(sized.buffers.size());
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
  current.flops += double(std::max<int64_t>(call.flops, 0));
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

static CollectiveKind kindOf(const format::AllReduce &) {
  return CollectiveKind::AllReduce;
}
static CollectiveKind kindOf(const format::ReduceScatter &) {
  return CollectiveKind::ReduceScatter;
}
static CollectiveKind kindOf(const format::AllGather &) {
  return CollectiveKind::AllGather;
}
static CollectiveKind kindOf(const format::Broadcast &) {
  return CollectiveKind::Broadcast;
}

static uint32_t rootOf(const Collective auto &) { return 0; }
static uint32_t rootOf(const format::Broadcast &broadcast) {
  return broadcast.root();
}

bool Walker::holds(uint32_t buffer, uint64_t bytes, uint64_t times) const {
  return !__builtin_mul_overflow(bytes, times, &bytes) &&
         bytes <= entry.buffers()->Get(buffer)->max_bytes();
}

/// Whether a rank's part of `all`, of as many bytes as each rank has of it,
/// lies elsewhere or at its own place there.
static bool isAtItsPlace(const std::byte *part, const std::byte *all,
                         uint64_t bytes, uint64_t rank, uint64_t ranks) {
  std::less_equal<const std::byte *> isBehind;
  return isBehind(part + bytes, all) || isBehind(all + bytes * ranks, part) ||
         part == all + bytes * rank;
}

template <typename Table>
Status Walker::exchange(const Table &table, Place place) {
  auto ranks = static_cast<uint32_t>(workspace->ranks);
  int64_t count = 0;
  std::byte *from = nullptr, *to = nullptr;
  if (Status status = sizeOf(*table.count(), count); !status.ok())
    return status;
  if (Status status = addressOf(table.from(), from); !status.ok())
    return status;
  if (Status status = addressOf(table.to(), to); !status.ok())
    return status;
  auto bytes = bytesOf(table.dtype(), std::span(&count, 1));
  if (!bytes || !holds(table.from(), *bytes, readsOfAll<Table> ? ranks : 1) ||
      !holds(table.to(), *bytes, writesOfAll<Table> ? ranks : 1))
    return makeError(Code::BadData, "a collective of ", count, " ",
                     traitsOf(table.dtype()).name, " by ", ranks,
                     " ranks does not fit its buffers");
  if (movesParts<Table> && !isAtItsPlace(readsOfAll<Table> ? to : from,
                                         readsOfAll<Table> ? from : to, *bytes,
                                         workspace->rank, ranks))
    return makeError(Code::BadData, "a collective of rank ", workspace->rank,
                     " is of another rank's part");
  if (rootOf(table) >= ranks)
    return makeError(Code::Usage, "a broadcast of rank ", rootOf(table),
                     ": there are ", ranks);
  return stream.exchange(
      {.command = place.number,
       .lane = place.lane,
       .kind = kindOf(table),
       .from = from,
       .to = to,
       .count = static_cast<size_t>(count),
       .dtype = table.dtype(),
       .root = static_cast<int>(rootOf(table)),
       .order = addsInTree(table) ? SumOrder::Tree : SumOrder::Any,
       .of = table.node() ? table.node()->string_view() : std::string_view()});
}

/// Refuses what a SetSize or ReadSize command gives if it is out of range.
template <typename Command>
static Status checkSize(const Command &command, int64_t value) {
  std::string_view what =
      command.what() ? command.what()->string_view() : "a size";
  bool isCheck = command.min() == 1 && command.max() == 1;
  if (value != 1 && isCheck)
    return makeError(Code::Usage, "node '", nameNode(command.node()),
                     "': ", what);
  if (value < command.min() || value > command.max())
    return makeError(Code::Usage, "node '", nameNode(command.node()),
                     "': ", what, " is ", value, ", compiled for ",
                     command.min(), "..", command.max());
  return Status();
}

Status Walker::setSize(const format::SetSize &set) {
  int64_t value = 0;
  if (Status status = sizeOf(*set.value(), value); !status.ok())
    return status;
  if (Status status = checkSize(set, value); !status.ok())
    return status;
  slotValues[set.slot()] = value;
  return Status();
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
  if (Status status = checkSize(read, value); !status.ok())
    return status;
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
    first += steps[first].extent;
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
