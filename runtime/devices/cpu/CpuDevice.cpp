#include "runtime/devices/cpu/CpuDevice.h"

#include "runtime/devices/cpu/SharingTrial.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>
#include <xmmintrin.h>

using namespace tcc;
using namespace tcc::runtime;

/// Ranges per thread of one launch: enough to even out unequal threads.
static constexpr int64_t kRangesPerThread = 8;

/// What one thread does in a microsecond, roughly.
static constexpr double kFlopsPerMicrosecond = 175e3,
                        kBytesPerMicrosecond = 43e3;

/// Less work, in microseconds, stays on one thread: others come late to it, and
/// fetch what the first one has in its caches. Two of them gain nothing by 7.
static constexpr double kSharedWork = 8;

/// While others sleep, so much work is done alone before they are woken. A
/// single launch that is not longer would be over by the time they come.
static constexpr double kWakingWork = 100;

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

class CpuStream final : public Stream {
public:
  CpuStream(std::span<const format::KernelFunction> kernels, TaskRunner &runner)
      : kernels(kernels), runner(runner), faults(runner.threads()) {}

  Status allocate(std::span<const format::Entry *const> entries,
                  const Allocator &allocator);

  Status walk(Walk &walk) override;
  Status follow(const Walk &) override { return Status(); }
  Status launch(const KernelLaunch &launch) override;
  Status copy(void *to, const void *from, size_t bytes) override {
    std::memmove(to, from, bytes);
    return Status();
  }
  Status upload(Walk &, void *to, const void *from, size_t bytes) override {
    return copy(to, from, bytes);
  }
  Status download(void *to, const void *from, size_t bytes) override {
    return copy(to, from, bytes);
  }
  Status read(void *to, const void *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return Status();
  }
  Status wait() override { return Status(); }
  Status seal(Walk &) override { return Status(); }
  Status finish(Walk &) override { return Status(); }
  void drain() override {}
  uint64_t plannedBytes() const override { return scratch.size(); }

private:
  /// What the tasks of one launch share.
  struct Task {
    format::KernelFunction kernel;
    const KernelLaunch &launch;
    CpuStream &stream;
  };
  /// How the walks of an entry run, with the sizes that they had last.
  struct Sharing {
    const format::Entry *entry;
    size_t sizes = 0; ///< a hash of them: walks allocate nothing
    SharingTrial trial = {};
  };
  /// The first bad index that a worker saw, by task.
  struct Fault {
    int64_t flagAndValue[2];
    int64_t task;
    int64_t value;
  };

  void **buffersOf(const KernelLaunch &launch, int worker) {
    return worker == 0 ? launch.buffers.data()
                       : arguments.data() + worker * argumentStride;
  }
  Sharing &sharingOf(const Walk &walk);
  bool isWorthSharing(const KernelLaunch &launch);
  void placeArguments(const KernelLaunch &launch, int workers);
  static void runTask(void *argument, int64_t first, int64_t last, int worker);

  std::span<const format::KernelFunction> kernels;
  TaskRunner &runner;
  Memory scratch; ///< one aligned piece per worker
  size_t scratchStride = 0;
  size_t argumentStride = 0;
  std::vector<void *> arguments; ///< of a launch, per worker but the first
  std::vector<Fault> faults;     ///< per worker
  std::vector<Sharing> sharings; ///< per entry
  bool mayShare = true;          ///< the launches of this walk
  double workAlone = 0;          ///< while others slept, in microseconds
};

} // namespace

/// The scratch of one worker, a multiple of the alignment.
static size_t scratchStrideOf(const format::Entry &entry) {
  return (entry.worker_scratch_bytes() + format::kTensorAlignment - 1) /
         format::kTensorAlignment * format::kTensorAlignment;
}

Status CpuStream::allocate(std::span<const format::Entry *const> entries,
                           const Allocator &allocator) {
  size_t bytes = 0;
  for (const format::Entry *entry : entries) {
    size_t stride = scratchStrideOf(*entry);
    if (stride < entry->worker_scratch_bytes() ||
        __builtin_mul_overflow(stride, size_t(runner.threads()), &bytes))
      return makeError(Code::OutOfMemory, "worker scratch of ",
                       entry->worker_scratch_bytes(), " bytes is too large");
    sharings.push_back({entry});
    scratchStride = std::max(scratchStride, stride);
    argumentStride = std::max(argumentStride, measureLaunches(*entry).buffers);
  }
  arguments.resize(argumentStride * runner.threads());
  auto pieces = Memory::allocate(scratchStride * runner.threads(), allocator,
                                 "worker scratch");
  if (!pieces.ok())
    return pieces.takeStatus();
  scratch = std::move(*pieces);
  return Status();
}

CpuStream::Sharing &CpuStream::sharingOf(const Walk &walk) {
  Sharing &sharing = *std::ranges::find(sharings, walk.entry, &Sharing::entry);
  auto symbols = std::as_bytes(walk.sizes.first(walk.symbols));
  size_t sizes = std::hash<std::string_view>()(
      {reinterpret_cast<const char *>(symbols.data()), symbols.size()});
  if (sharing.sizes != sizes)
    sharing = {sharing.entry, sizes};
  return sharing;
}

Status CpuStream::walk(Walk &walk) {
  if (runner.threads() == 1)
    return walk.run();
  using Clock = std::chrono::steady_clock;
  SharingTrial &trial = sharingOf(walk).trial;
  mayShare = trial.isShared();
  auto start = Clock::now();
  Status status = walk.run();
  std::chrono::duration<double, std::micro> time = Clock::now() - start;
  trial.add(time.count());
  return status;
}

void CpuStream::runTask(void *argument, int64_t first, int64_t last,
                        int worker) {
  const Task &task = *static_cast<const Task *>(argument);
  CpuStream &stream = task.stream;
  {
    DefaultRounding rounding;
    task.kernel(stream.buffersOf(task.launch, worker), task.launch.sizes.data(),
                first, last,
                stream.scratch.data() + worker * stream.scratchStride);
  }
  if (!task.launch.command.fault())
    return;
  Fault &fault = stream.faults[worker];
  if (fault.flagAndValue[0] && first < fault.task) {
    fault.task = first;
    fault.value = fault.flagAndValue[1];
  }
  fault.flagAndValue[0] = 0;
}

/// Fills the arguments of each worker that takes part; a launch with a fault
/// buffer gives each its own.
void CpuStream::placeArguments(const KernelLaunch &launch, int workers) {
  for (int worker = 0; worker < workers; ++worker) {
    void **buffers = buffersOf(launch, worker);
    if (worker > 0)
      std::ranges::copy(launch.buffers, buffers);
    if (!launch.command.fault())
      continue;
    faults[worker] = {{0, 0}, INT64_MAX, 0};
    buffers[launch.buffers.size() - 1] = faults[worker].flagAndValue;
  }
}

/// In microseconds; without end if it is not known.
static double estimateWork(const KernelLaunch &launch) {
  auto take = [&](const format::SizeExpr *work, double perMicrosecond) {
    int64_t amount = 0;
    return work && evaluate(*work, launch.slots.data(), amount)
               ? amount / perMicrosecond
               : INFINITY;
  };
  return std::max(take(launch.command.flops(), kFlopsPerMicrosecond),
                  take(launch.command.bytes(), kBytesPerMicrosecond));
}

/// Whether several threads work on it.
bool CpuStream::isWorthSharing(const KernelLaunch &launch) {
  if (launch.tasks <= 1 || !mayShare)
    return false;
  double work = estimateWork(launch);
  if (work < kSharedWork)
    return false;
  if (runner.isAwake())
    return true;
  workAlone += work;
  if (workAlone < kWakingWork)
    return false;
  workAlone = 0;
  return true;
}

Status CpuStream::launch(const KernelLaunch &launch) {
  bool isShared = isWorthSharing(launch);
  int workers = isShared ? runner.threads() : 1;
  placeArguments(launch, workers);
  Task task = {kernels[launch.command.kernel()], launch, *this};
  bool mayFault = launch.command.fault();
  // With one task per range the first fault does not depend on the threads.
  int64_t ranges = workers > 1 ? workers * kRangesPerThread : 1;
  int64_t grain = mayFault ? 1 : std::max<int64_t>(launch.tasks / ranges, 1);
  if (isShared)
    runner.run(launch.tasks, grain, runTask, &task);
  else
    for (int64_t first = 0; first < launch.tasks; first += grain)
      runTask(&task, first, first + grain, 0);
  if (!mayFault || launch.tasks < 1)
    return Status();
  auto taking = std::span(faults).first(workers);
  auto first = std::ranges::min_element(taking, {}, &Fault::task);
  return first->task == INT64_MAX ? Status()
                                  : indexError(launch.command, first->value);
}

Result<std::unique_ptr<Stream>>
CpuDevice::createStream(std::span<const format::Entry *const> entries,
                        const StreamOptions &options) {
  auto stream = std::make_unique<CpuStream>(kernels, *options.runner);
  if (Status status = stream->allocate(entries, options.allocator);
      !status.ok())
    return status;
  return std::unique_ptr<Stream>(std::move(stream));
}

Status CpuDevice::write(void *to, const void *from, size_t bytes) {
  if (bytes > 0)
    std::memcpy(to, from, bytes);
  return Status();
}

Status CpuDevice::read(void *to, const void *from, size_t bytes) {
  return write(to, from, bytes);
}

/// What is zero is only read: pages that nobody wrote take no memory.
Status CpuDevice::clear(void *at, size_t bytes) {
  constexpr size_t kPage = 4096;
  auto *data = static_cast<std::byte *>(at);
  for (size_t done = 0; done < bytes; done += kPage) {
    std::byte *page = data + done;
    size_t count = std::min(kPage, bytes - done);
    bool isZero =
        page[0] == std::byte(0) && std::memcmp(page, page + 1, count - 1) == 0;
    if (!isZero)
      std::memset(page, 0, count);
  }
  return Status();
}
