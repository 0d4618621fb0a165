#include "runtime/executor/Walker.h"

#include "runtime/package/DType.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>
#include <cstring>
#include <xmmintrin.h>

using namespace tcc;
using namespace tcc::runtime;
using format::StorageClass;

/// Ranges per thread of one launch: enough to even out unequal threads.
static constexpr int64_t kRangesPerThread = 8;

namespace {

/// The floating-point environment that kernels are compiled for: results must
/// not depend on which thread of the embedder runs them, nor on its settings.
class DefaultRounding {
public:
  DefaultRounding() { _mm_setcsr(kNearestWithDenormals); }
  ~DefaultRounding() { _mm_setcsr(saved); }
  DefaultRounding(const DefaultRounding &) = delete;
  DefaultRounding &operator=(const DefaultRounding &) = delete;

private:
  static constexpr unsigned kNearestWithDenormals = 0x1f80;
  unsigned saved = _mm_getcsr();
};

} // namespace

static std::string_view nodeOf(const flatbuffers::String *node) {
  return node ? node->string_view() : std::string_view("?");
}

/// The scratch of one worker, a multiple of the alignment.
static size_t workerStrideOf(const format::Entry &entry) {
  return (entry.worker_scratch_bytes() + format::kTensorAlignment - 1) /
         format::kTensorAlignment * format::kTensorAlignment;
}

Result<std::shared_ptr<const Scratch>>
Scratch::allocate(std::span<const format::Entry *const> entries, int workers,
                  const Allocator &allocator) {
  size_t arenaBytes = 0, workerBytes = 0;
  for (const format::Entry *entry : entries) {
    size_t stride = workerStrideOf(*entry), bytes = 0;
    if (stride < entry->worker_scratch_bytes() ||
        __builtin_mul_overflow(stride, size_t(workers), &bytes))
      return makeError(Code::OutOfMemory, "worker scratch of ",
                       entry->worker_scratch_bytes(), " bytes is too large");
    workerBytes = std::max(workerBytes, bytes);
    arenaBytes = std::max<size_t>(arenaBytes, entry->scratch_bytes());
  }
  auto scratch = std::make_shared<Scratch>();
  auto pieces = Memory::allocate(workerBytes, allocator, "worker scratch");
  if (!pieces.ok())
    return pieces.takeStatus();
  scratch->workers = std::move(*pieces);
  auto arena = Memory::allocate(arenaBytes, allocator, "the arena");
  if (!arena.ok())
    return arena.takeStatus();
  scratch->arena = std::move(*arena);
  return std::shared_ptr<const Scratch>(std::move(scratch));
}

Result<std::unique_ptr<Walker>>
Walker::create(const format::Entry &entry,
               std::span<const format::KernelFunction> kernels,
               TaskRunner &runner, const Allocator &allocator,
               std::shared_ptr<const Scratch> scratch) {
  std::unique_ptr<Walker> walker(new Walker(entry, kernels, runner));
  if (!scratch) {
    const format::Entry *own[] = {&entry};
    auto allocated = Scratch::allocate(own, runner.threads(), allocator);
    if (!allocated.ok())
      return allocated.takeStatus();
    scratch = std::move(*allocated);
  }
  walker->scratch = std::move(scratch);
  walker->allocate();
  return walker;
}

/// The most arguments that any launch of a block has.
void Walker::measureBlock(const format::Block &block, size_t &buffers,
                          size_t &sizes) const {
  for (const format::Command *command : *block.commands()) {
    if (const format::Launch *launch = command->action_as_Launch()) {
      buffers = std::max<size_t>(
          buffers, launch->buffers() ? launch->buffers()->size() : 0);
      sizes = std::max<size_t>(sizes,
                               launch->sizes() ? launch->sizes()->size() : 0);
    }
    if (const format::If *branch = command->action_as_If()) {
      measureBlock(*branch->then_block(), buffers, sizes);
      measureBlock(*branch->else_block(), buffers, sizes);
    }
    if (const format::Loop *loop = command->action_as_Loop())
      measureBlock(*loop->body(), buffers, sizes);
  }
}

void Walker::allocate() {
  workerStride = workerStrideOf(entry);
  slotValues.resize(entry.slot_count());
  stateBuffers.resize(entry.states() ? entry.states()->size() : 0);
  addresses.resize(entry.buffers()->size());
  for (uint32_t i = 0; i < addresses.size(); ++i) {
    const format::Buffer &buffer = *entry.buffers()->Get(i);
    if (buffer.base() >= 0)
      continue;
    if (buffer.storage() == StorageClass::scratch)
      addresses[i] = scratch->arena.data() + buffer.offset();
    if (buffer.storage() == StorageClass::state)
      stateBuffers[buffer.index()].push_back(i);
  }
  size_t sizes = 0;
  measureBlock(*entry.body(), argumentStride, sizes);
  arguments.resize(argumentStride * runner.threads());
  sizeArguments.resize(sizes);
  faults.resize(runner.threads());
}

void Walker::bind(StorageClass storage, uint32_t index, void *address) {
  for (uint32_t i = 0; i < addresses.size(); ++i) {
    const format::Buffer &buffer = *entry.buffers()->Get(i);
    if (buffer.storage() == storage && buffer.index() == index &&
        buffer.base() < 0)
      addresses[i] = static_cast<std::byte *>(address);
  }
}

void Walker::bindState(uint32_t index, void *current, void *next) {
  for (uint32_t i : stateBuffers[index])
    addresses[i] = static_cast<std::byte *>(
        entry.buffers()->Get(i)->next() ? next : current);
}

Status Walker::sizeOf(const format::SizeExpr &expr, int64_t &value) const {
  if (evaluate(expr, slotValues.data(), value))
    return Status();
  return makeError(Code::BadData, "a size expression of entry '",
                   entry.name()->string_view(), "' overflows");
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
  address = addresses[buffer] + offset;
  return Status();
}

Status Walker::walk() { return runBlock(*entry.body()); }

Status Walker::runBlock(const format::Block &block) {
  for (const format::Command *command : *block.commands())
    if (Status status = runCommand(*command); !status.ok())
      return status;
  return Status();
}

Status Walker::runCommand(const format::Command &command) {
  switch (command.action_type()) {
  case format::Action::Launch:
    return launch(*command.action_as_Launch());
  case format::Action::Copy:
    return copy(*command.action_as_Copy());
  case format::Action::SetSize:
    return setSize(*command.action_as_SetSize());
  case format::Action::ReadSize:
    return readSize(*command.action_as_ReadSize());
  case format::Action::If:
    return branch(*command.action_as_If());
  case format::Action::Loop:
    return loop(*command.action_as_Loop());
  case format::Action::RecordEvent:
  case format::Action::WaitEvent:
  case format::Action::AllReduce:
    return Status(); // one lane, one rank
  case format::Action::NONE:
    break;
  }
  return Status(Code::Internal, "an unverified command");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

void Walker::runTask(void *argument, int64_t first, int64_t last, int worker) {
  const Task &task = *static_cast<const Task *>(argument);
  Walker &walker = *task.walker;
  void **buffers = walker.arguments.data() + worker * walker.argumentStride;
  std::byte *scratch =
      walker.scratch->workers.data() + worker * walker.workerStride;
  {
    DefaultRounding rounding;
    task.kernel(buffers, task.sizes, first, last, scratch);
  }
  if (!task.mayFault)
    return;
  Fault &fault = walker.faults[worker];
  if (fault.flagAndValue[0] && first < fault.task) {
    fault.task = first;
    fault.value = fault.flagAndValue[1];
  }
  fault.flagAndValue[0] = 0;
}

/// Fills the arguments of each worker that takes part; a launch with a fault
/// buffer gives each its own.
Status Walker::gatherArguments(const format::Launch &launch, int64_t tasks) {
  size_t count = launch.buffers() ? launch.buffers()->size() : 0;
  for (size_t i = 0; i < count; ++i) {
    std::byte *address = nullptr;
    if (Status status = addressOf(launch.buffers()->Get(i), address);
        !status.ok())
      return status;
    arguments[i] = address;
  }
  for (size_t worker = 1; tasks > 1 && worker < faults.size(); ++worker)
    std::copy_n(arguments.data(), count,
                arguments.data() + worker * argumentStride);
  for (size_t worker = 0; launch.fault() && worker < faults.size(); ++worker) {
    faults[worker] = {{0, 0}, INT64_MAX, 0};
    arguments[worker * argumentStride + count - 1] =
        faults[worker].flagAndValue;
  }
  size_t sizes = launch.sizes() ? launch.sizes()->size() : 0;
  for (size_t i = 0; i < sizes; ++i)
    if (Status status = sizeOf(*launch.sizes()->Get(i), sizeArguments[i]);
        !status.ok())
      return status;
  return Status();
}

Status Walker::runTasks(const format::Launch &launch, int64_t tasks) {
  Task task = {kernels[launch.kernel()], sizeArguments.data(), this,
               launch.fault()};
  // With one task per range the first fault does not depend on the threads.
  int64_t ranges = runner.threads() * kRangesPerThread;
  int64_t grain = launch.fault() ? 1 : std::max<int64_t>(tasks / ranges, 1);
  if (tasks == 1)
    runTask(&task, 0, 1, 0);
  else if (tasks > 1)
    runner.run(tasks, grain, runTask, &task);
  return launch.fault() ? reportFault(launch) : Status();
}

Status Walker::reportFault(const format::Launch &launch) const {
  auto first = std::min_element(
      faults.begin(), faults.end(),
      [](const Fault &a, const Fault &b) { return a.task < b.task; });
  if (first->task == INT64_MAX)
    return Status();
  return makeError(Code::Usage, "node '", nodeOf(launch.node()), "': index ",
                   first->value, " is out of range");
}

Status Walker::launch(const format::Launch &launch) {
  int64_t tasks = 0;
  if (Status status = sizeOf(*launch.tasks(), tasks); !status.ok())
    return status;
  if (Status status = gatherArguments(launch, tasks); !status.ok())
    return status;
  if (!observer)
    return runTasks(launch, tasks);
  size_t count = launch.buffers() ? launch.buffers()->size() : 0;
  std::span<void *const> buffers(arguments.data(), count);
  if (Status status = observer->before(launch, buffers); !status.ok())
    return status;
  if (Status status = runTasks(launch, tasks); !status.ok())
    return status;
  return observer->after(launch, buffers);
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
  uint64_t room = std::min(entry.buffers()->Get(copy.from())->max_bytes(),
                           entry.buffers()->Get(copy.to())->max_bytes());
  if (bytes < 0 || static_cast<uint64_t>(bytes) > room)
    return makeError(Code::BadData, "a copy of ", bytes,
                     " bytes does not fit a buffer of ", room);
  if (from != to)
    std::memmove(to, from, bytes);
  return Status();
}

Status Walker::setSize(const format::SetSize &set) {
  return sizeOf(*set.value(), slotValues[set.slot()]);
}

/// The integer or boolean at `address`, which need not be aligned.
static int64_t loadInteger(DType dtype, const std::byte *address) {
  const DTypeTraits &traits = traitsOf(dtype);
  uint64_t bits = 0;
  std::memcpy(&bits, address, traits.bytes);
  unsigned unused = 64 - 8 * traits.bytes;
  if (traits.kind == DTypeKind::Signed)
    return static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int64_t>(bits);
}

Status Walker::readSize(const format::ReadSize &read) {
  std::byte *address = nullptr;
  if (Status status = addressOf(read.buffer(), address); !status.ok())
    return status;
  int64_t value = loadInteger(read.dtype(), address);
  if (value < read.min() || value > read.max())
    return makeError(Code::Usage, "node '", nodeOf(read.node()), "': size ",
                     value, " is outside [", read.min(), ", ", read.max(), "]");
  slotValues[read.slot()] = value;
  return Status();
}

Status Walker::branch(const format::If &branch) {
  std::byte *condition = nullptr;
  if (Status status = addressOf(branch.condition(), condition); !status.ok())
    return status;
  return runBlock(*condition != std::byte(0) ? *branch.then_block()
                                             : *branch.else_block());
}

Status Walker::loop(const format::Loop &loop) {
  int64_t trips = INT64_MAX;
  if (loop.trips())
    if (Status status = sizeOf(*loop.trips(), trips); !status.ok())
      return status;
  int64_t &iteration = slotValues[loop.iteration()];
  for (iteration = 0; iteration < trips; ++iteration) {
    if (loop.condition() >= 0) {
      std::byte *condition = nullptr;
      if (Status status = addressOf(loop.condition(), condition); !status.ok())
        return status;
      if (*condition == std::byte(0))
        return Status();
    }
    if (iteration >= loop.max_trips())
      return makeError(Code::Usage, "node '", nodeOf(loop.node()),
                       "': the loop runs more than ", loop.max_trips(),
                       " times");
    if (Status status = runBlock(*loop.body()); !status.ok())
      return status;
  }
  return Status();
}
