#include "runtime/train/NonFinite.h"

#include "runtime/package/EntryKinds.h"
#include "runtime/train/Session.h"

#include <algorithm>
#include <cstring>
#include <optional>

using namespace tcc;
using namespace tcc::runtime;
using format::EntryKind;
using format::VariableKind;

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

namespace {

/// What of a tensor's elements is not finite.
struct Count {
  uint64_t infinite = 0, nan = 0, of = 0;

  bool isAny() const { return infinite + nan > 0; }
};

} // namespace

/// Counts the floats whose `exponent` bits are all ones: infinite where the
/// mantissa is 0, else NaN.
template <typename Word>
static Count countWords(std::span<const std::byte> bytes, Word exponent,
                        Word mantissa) {
  Count count;
  count.of = bytes.size() / sizeof(Word);
  for (uint64_t i = 0; i < count.of; ++i) {
    Word word;
    std::memcpy(&word, bytes.data() + i * sizeof(word), sizeof(word));
    if ((word & exponent) == exponent)
      ++(word & mantissa ? count.nan : count.infinite);
  }
  return count;
}

/// Nothing of integers.
static Count countNonFinite(DType dtype, std::span<const std::byte> bytes) {
  switch (dtype) {
  case DType::f64:
    return countWords<uint64_t>(bytes, 0x7ffull << 52, (1ull << 52) - 1);
  case DType::f32:
    return countWords<uint32_t>(bytes, 0xffu << 23, (1u << 23) - 1);
  case DType::f16:
    return countWords<uint16_t>(bytes, 0x7c00, 0x03ff);
  case DType::bf16:
    return countWords<uint16_t>(bytes, 0x7f80, 0x007f);
  default:
    return {};
  }
}

static NonFinite makeFound(NonFinite::Kind kind, std::string_view name,
                           const Count &count) {
  return {kind,     std::string(name),         {}, count.infinite + count.nan,
          count.of, /*isAnyNaN=*/count.nan > 0};
}

std::string runtime::describe(const NonFinite &found) {
  static constexpr const char *kKinds[] = {"input", "variable", "kernel"};
  std::string text = concat(kKinds[int(found.kind)], " '", found.name, "'");
  for (size_t i = 0; i < found.nodes.size(); ++i)
    text += concat(i > 0                    ? ", "
                   : found.nodes.size() > 1 ? " of nodes "
                                            : " of node ",
                   "'", found.nodes[i], "'");
  return text + concat(", of which ", found.count, " of ", found.of,
                       " elements are ", found.isAnyNaN ? "NaN" : "infinite");
}

//===----------------------------------------------------------------------===//
// Launches
//===----------------------------------------------------------------------===//

namespace {

/// Looks at the results of each launch of a walk.
class ResultObserver : public LaunchObserver {
public:
  /// A launch with a result that is not finite: the first one of it.
  struct Launch {
    uint64_t number; ///< among those of the walk
    const format::Launch *launch;
    Count count;
  };

  ResultObserver(const Executable &executable, const format::Entry &entry)
      : executable(executable), entry(entry) {}

  Status before(const format::Launch &launch,
                std::span<void *const> buffers) override {
    return Status();
  }
  Status after(const format::Launch &launch,
               std::span<void *const> buffers) override;

  std::vector<Launch> launches;

private:
  const Executable &executable;
  const format::Entry &entry;
  uint64_t number = 0;
  std::vector<std::byte> copy; ///< of a result
};

} // namespace

/// The arena was zero at first: what a buffer has beyond its tensor is finite
/// until some launch's result is not.
Status ResultObserver::after(const format::Launch &launch,
                             std::span<void *const> buffers) {
  ++number;
  const format::Kernel &kernel =
      *executable.program().kernels()->Get(launch.kernel());
  size_t results = kernel.results() ? kernel.results()->size() : 0;
  size_t first = buffers.size() - launch.fault() - results;
  for (size_t i = 0; i < results; ++i) {
    DType dtype = kernel.results()->Get(i);
    if (traitsOf(dtype).kind != DTypeKind::Float)
      continue;
    uint32_t buffer = launch.buffers()->Get(first + i);
    copy.resize(entry.buffers()->Get(buffer)->max_bytes());
    if (Status status = executable.device().read(
            copy.data(), buffers[first + i], copy.size());
        !status.ok())
      return status;
    Count count = countNonFinite(dtype, copy);
    if (!count.isAny())
      continue;
    launches.push_back({number, &launch, count});
    return Status();
  }
  return Status();
}

/// The first launch of `walk` that has finite results in `healthy`, a walk for
/// another batch: models make infinite masks, and NaN that they leave out
/// later. Where there is none, the first one with NaN, or else the first.
static const ResultObserver::Launch *findFirst(const ResultObserver &walk,
                                               const ResultObserver &healthy) {
  using Launch = ResultObserver::Launch;
  for (const Launch &launch : walk.launches)
    if (std::ranges::find(healthy.launches, launch.number, &Launch::number) ==
        healthy.launches.end())
      return &launch;
  auto nan = std::ranges::find_if(
      walk.launches, [](const Launch &launch) { return launch.count.nan > 0; });
  if (nan != walk.launches.end())
    return &*nan;
  return walk.launches.empty() ? nullptr : &walk.launches.front();
}

static NonFinite describeLaunch(const ResultObserver::Launch &seen,
                                const format::Program &program) {
  const format::Launch &launch = *seen.launch;
  NonFinite found = makeFound(
      NonFinite::Kind::kernel,
      program.kernels()->Get(launch.kernel())->symbol()->string_view(),
      seen.count);
  for (size_t i = 0; launch.nodes() && i < launch.nodes()->size(); ++i)
    found.nodes.push_back(launch.nodes()->Get(i)->str());
  return found;
}

//===----------------------------------------------------------------------===//
// Sessions
//===----------------------------------------------------------------------===//

static std::optional<NonFinite> findInput(const format::Entry &entry,
                                          std::span<const TensorView> batch) {
  for (size_t i = 0; i < batch.size(); ++i) {
    auto bytes = bytesOf(batch[i].dtype, batch[i].shape).value_or(0);
    Count count = countNonFinite(
        batch[i].dtype, {static_cast<const std::byte *>(batch[i].data), bytes});
    // Masks are infinite.
    if (count.nan > 0)
      return makeFound(NonFinite::Kind::input,
                       entry.inputs()->Get(i)->name()->string_view(), count);
  }
  return std::nullopt;
}

/// What updates make from one to the next; settings may be infinite, and
/// gradients are of the update that is looked at.
static bool isLearned(VariableKind kind) {
  return kind == VariableKind::parameter || kind == VariableKind::buffer ||
         kind == VariableKind::slot || kind == VariableKind::ema;
}

static std::optional<NonFinite>
findVariable(const Variables &variables, const Variables::Snapshot &snapshot) {
  for (size_t i = 0; i < variables.size(); ++i) {
    const format::Variable &variable = variables.describe(i);
    if (!isLearned(variable.kind()))
      continue;
    Count count = countNonFinite(variable.dtype(), snapshot.bytes(i));
    if (count.isAny())
      return makeFound(NonFinite::Kind::variable,
                       variable.name()->string_view(), count);
  }
  return std::nullopt;
}

/// Runs a step launch by launch; what the walk changes is the caller's affair.
Status TrainingSession::observe(EntryContexts &step,
                                std::span<const TensorView> inputs,
                                LaunchObserver &observer) {
  clearFault(); // which changes what a step does
  Context &context = *step.turns[0];
  std::span<std::byte> arena = context.walker().arena();
  if (Status status = program->device().clear(arena.data(), arena.size());
      !status.ok())
    return status;
  context.walker().setObserver(&observer);
  Status status = run(step, inputs);
  context.walker().setObserver(nullptr);
  return status;
}

Status TrainingSession::restore(const Variables::Snapshot &snapshot) {
  for (size_t i = 0; i < store.size(); ++i)
    if (Status status = store.write(i, snapshot.bytes(i)); !status.ok())
      return status;
  return Status();
}

/// `before` are the variables before the step that is looked at.
Result<std::optional<NonFinite>>
TrainingSession::findKernel(std::span<const TensorView> batch,
                            std::span<const TensorView> healthy,
                            const Variables::Snapshot &before) {
  auto find = [&](EntryKind kind) -> Result<std::optional<NonFinite>> {
    bool takesBatch = kind == EntryKind::accumulate_step;
    auto inputs = takesBatch ? batch : std::span<const TensorView>();
    Result<EntryContexts *> step = get(kind, inputs);
    if (!step.ok())
      return step.takeStatus();
    ResultObserver own(*program, *(*step)->entry),
        other(*program, *(*step)->entry);
    // Another variant has other launches.
    Result<EntryContexts *> same = get(kind, healthy);
    if (takesBatch && !healthy.empty() && same.ok() && *same == *step) {
      if (Status status = observe(**step, healthy, other); !status.ok())
        return status;
      if (Status status = restore(before); !status.ok())
        return status;
    }
    if (Status status = observe(**step, inputs, own); !status.ok())
      return status;
    const auto *first = findFirst(own, other);
    return first ? std::optional(describeLaunch(*first, program->program()))
                 : std::nullopt;
  };
  auto found = find(EntryKind::accumulate_step);
  // An update of several ranks is made by all of them.
  if (!found.ok() || *found || ranks)
    return found;
  return find(format::entryOf(EntryKind::apply, runsAsRanks()));
}

Result<std::optional<NonFinite>>
TrainingSession::findNonFinite(std::span<const TensorView> batch,
                               std::span<const TensorView> healthy) {
  if (flightCount > 0)
    return Status(Code::Usage, "steps are under way");
  Result<EntryContexts *> step = get(EntryKind::accumulate_step, batch);
  if (!step.ok())
    return step.takeStatus();
  auto input = findInput(*(*step)->entry, batch);
  if (input)
    return input;
  auto memory = Memory::allocate(store.byteCount(), systemAllocator(),
                                 "the variables before a step");
  if (!memory.ok())
    return memory.takeStatus();
  auto before = store.snapshotInto(*memory);
  if (!before.ok())
    return before.takeStatus();
  if (auto variable = findVariable(store, *before))
    return variable;
  auto found = findKernel(batch, healthy, *before);
  Status status = restore(*before);
  readBatchNumber();
  return status.ok() ? std::move(found) : std::move(status);
}
