#include "runtime/devices/cpu/CpuDevice.h"

#include "runtime/base/Alignment.h"
#include "runtime/base/SharingTrial.h"
#include "runtime/devices/cpu/DefaultRounding.h"
#include "runtime/devices/cpu/KernelPlans.h"
#include "runtime/devices/cpu/Lane.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

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

class CpuStream final : public Stream {
public:
  CpuStream(std::span<const format::KernelFunction> kernels, KernelPlans plans,
            TaskRunner &runner, Communicator *ranks)
      : kernels(kernels), plans(std::move(plans)), runner(runner), ranks(ranks),
        faults(runner.threads()) {}

  Status allocate(std::span<const EntryPlan> entries,
                  const Allocator &allocator);

  Status follow(const Run &) override { return Status(); }
  Result<bool> begin(Run &run) override;
  Status dispatch(const Dispatch &dispatch) override;
  Status transfer(const Transfer &transfer) override;
  Status exchange(const Exchange &exchange) override;
  Status record(const Mark &mark) override;
  Status await(const Mark &mark) override;
  Status copy(void *to, const void *from, size_t bytes) override {
    std::memmove(to, from, bytes);
    return Status();
  }
  Status end(Run &run, Status given) override;
  Status upload(Run &, void *to, const void *from, size_t bytes) override {
    return copy(to, from, bytes);
  }
  Status download(void *to, const void *from, size_t bytes) override {
    return copy(to, from, bytes);
  }
  Status read(void *to, const void *from, size_t bytes) override {
    std::memcpy(to, from, bytes);
    return Status();
  }
  Status wait() override;
  Status seal(Run &) override { return Status(); }
  Status finish(Run &) override { return Status(); }
  void drain() override;
  Status tune(std::vector<Measurement> *measured) override;
  size_t laneCount() const override { return others.size() + 1; }
  void addPlanned(PlannedMemory &planned) const override {
    planned.workers += scratch.size();
  }

private:
  Status setTrace(Trace *trace) override;
  void recordInto(Trace *trace);

  /// What the tasks of one launch share.
  struct Task {
    format::KernelFunction kernel;
    const Dispatch &dispatch;
    CpuStream &stream;
  };
  /// How an entry runs, with the sizes that it had last.
  struct Sharing {
    size_t sizes = 0; ///< a hash of them: runs allocate nothing
    SharingTrial trial = SharingTrial();
  };
  /// The first bad index that a worker saw, by task.
  struct WorkerFault {
    int64_t flagAndValue[2];
    int64_t task;
    int64_t value;
  };

  void **buffersOf(const Dispatch &dispatch, int worker) {
    return worker == 0 ? dispatch.buffers.data()
                       : arguments.data() + worker * argumentStride;
  }
  Status createLanes(size_t count, size_t launching, size_t buffers,
                     size_t sizes);
  SharingTrial &trialOf(const Run &run);
  Status launch(const Dispatch &dispatch);
  void run(const Dispatch &dispatch);
  bool isWorthSharing(const Dispatch &dispatch);
  void placeArguments(const Dispatch &dispatch, int workers);
  void findFault(const Dispatch &dispatch, int workers);
  void traceLaunch(const Dispatch &dispatch);
  template <typename Work> void traceWork(TraceEvent event, Work work);
  static void runTask(void *argument, int64_t first, int64_t last, int worker);

  std::span<const format::KernelFunction> kernels;
  KernelPlans plans;
  size_t candidates = 0; ///< of all launches
  std::vector<Measurement> *tuning = nullptr;
  TaskRunner &runner;
  Communicator *ranks; ///< null for one
  Memory scratch;      ///< one aligned piece per worker
  size_t scratchStride = 0;
  size_t argumentStride = 0;
  std::vector<void *> arguments;   ///< of a launch, per worker but the first
  std::vector<WorkerFault> faults; ///< per worker
  std::vector<Sharing> sharings;   ///< per entry
  Run *current = nullptr;          ///< between its begin and its end
  uint64_t launched = 0;           ///< launches of this run so far
  Trace *recording = nullptr;      ///< what events of this run are added to
  uint32_t nextTraced = TraceEvent::kNone;     ///< after the last traced launch
  int64_t lastTraceEnd = 0;                    ///< of that launch of this run
  OrderedFault fault;                          ///< of this run, the first
  bool mayShare = true;                        ///< the launches of this run
  std::chrono::steady_clock::time_point start; ///< of this run
  double workAlone = 0; ///< while others slept, in microseconds
  std::unique_ptr<HostEvent[]> events;
  std::vector<uint32_t> recorders;           ///< of each event: its last record
  std::vector<std::unique_ptr<Lane>> others; ///< the lanes from lane 1 on
};

} // namespace

/// The scratch of one worker, a multiple of the alignment.
static size_t scratchStrideOf(const EntryPlan &entry) {
  return alignTensor(entry.workerScratchBytes);
}

Status CpuStream::allocate(std::span<const EntryPlan> entries,
                           const Allocator &allocator) {
  size_t bytes = 0, laneCount = 1, eventCount = 0, sizes = 0;
  size_t launchingLanes = 1;
  for (const EntryPlan &entry : entries) {
    laneCount = std::max(laneCount, entry.lanes);
    launchingLanes = std::max(launchingLanes, entry.launchingLanes);
    eventCount = std::max(eventCount, entry.events);
    sizes = std::max(sizes, entry.sizes);
    candidates += entry.candidates;
  }
  size_t workers = runner.threads() + launchingLanes - 1;
  for (const EntryPlan &entry : entries) {
    size_t stride = scratchStrideOf(entry);
    if (stride < entry.workerScratchBytes ||
        __builtin_mul_overflow(stride, workers, &bytes))
      return makeError(Code::OutOfMemory, "worker scratch of ",
                       entry.workerScratchBytes, " bytes is too large");
    scratchStride = std::max(scratchStride, stride);
    argumentStride = std::max(argumentStride, entry.buffers);
  }
  sharings.resize(entries.size());
  arguments.resize(argumentStride * runner.threads());
  auto pieces =
      Memory::allocate(scratchStride * workers, allocator, "worker scratch");
  if (!pieces.ok())
    return pieces.takeStatus();
  scratch = std::move(*pieces);
  events = std::make_unique<HostEvent[]>(eventCount);
  recorders.resize(eventCount);
  return createLanes(laneCount, launchingLanes, argumentStride, sizes);
}

/// Lanes that launch kernels have the scratch of a worker each, after that of
/// the runner's workers.
Status CpuStream::createLanes(size_t count, size_t launching, size_t buffers,
                              size_t sizes) {
  for (size_t i = 1; i < count; ++i) {
    size_t worker = runner.threads() + i - 1;
    std::byte *own =
        i < launching ? scratch.data() + worker * scratchStride : nullptr;
    auto lane = Lane::create(buffers, sizes, own);
    if (!lane.ok())
      return lane.takeStatus();
    others.push_back(std::move(*lane));
  }
  return Status();
}

SharingTrial &CpuStream::trialOf(const Run &run) {
  Sharing &sharing = sharings[run.entry];
  auto symbols = std::as_bytes(run.sizes.first(run.symbols));
  size_t sizes = std::hash<std::string_view>()(
      {reinterpret_cast<const char *>(symbols.data()), symbols.size()});
  if (sharing.sizes != sizes)
    sharing = {sizes};
  return sharing.trial;
}

Result<bool> CpuStream::begin(Run &run) {
  current = &run;
  run.fault.reset();
  launched = 0;
  nextTraced = TraceEvent::kNone;
  fault = {};
  recordInto(tracing && !tracing->isPaused() ? tracing : nullptr);
  if (runner.threads() == 1)
    return false;
  mayShare = trialOf(run).isShared();
  start = std::chrono::steady_clock::now();
  return false;
}

void CpuStream::drain() {
  for (const std::unique_ptr<Lane> &lane : others)
    lane->drain();
}

Status CpuStream::wait() {
  Status failure;
  drain();
  for (const std::unique_ptr<Lane> &lane : others) {
    OrderedFault found = lane->takeFault();
    if (found.place < fault.place)
      fault = found;
    Status failed = lane->takeFailure();
    if (failure.ok())
      failure = std::move(failed);
  }
  if (current && fault.place != UINT64_MAX)
    current->fault = fault.fault;
  return failure;
}

Status CpuStream::end(Run &run, Status given) {
  Status failure = wait();
  if (given.ok())
    given = std::move(failure);
  current = nullptr;
  if (runner.threads() == 1)
    return given;
  std::chrono::duration<double, std::micro> time =
      std::chrono::steady_clock::now() - start;
  trialOf(run).add(time.count());
  return given;
}

void CpuStream::runTask(void *argument, int64_t first, int64_t last,
                        int worker) {
  const Task &task = *static_cast<const Task *>(argument);
  CpuStream &stream = task.stream;
  {
    DefaultRounding rounding;
    task.kernel(stream.buffersOf(task.dispatch, worker),
                task.dispatch.sizes.data(), first, last,
                stream.scratch.data() + worker * stream.scratchStride);
  }
  if (!task.dispatch.mayFault)
    return;
  WorkerFault &fault = stream.faults[worker];
  if (fault.flagAndValue[0] && first < fault.task) {
    fault.task = first;
    fault.value = fault.flagAndValue[1];
  }
  fault.flagAndValue[0] = 0;
}

/// Fills the arguments of each worker that takes part; a launch with a fault
/// buffer gives each its own.
void CpuStream::placeArguments(const Dispatch &dispatch, int workers) {
  for (int worker = 0; worker < workers; ++worker) {
    void **buffers = buffersOf(dispatch, worker);
    if (worker > 0)
      std::ranges::copy(dispatch.buffers, buffers);
    if (!dispatch.mayFault)
      continue;
    faults[worker] = {{0, 0}, INT64_MAX, 0};
    buffers[dispatch.buffers.size() - 1] = faults[worker].flagAndValue;
  }
}

/// In microseconds; without end if it is not known.
static double estimateWork(const Dispatch &dispatch) {
  if (dispatch.flops < 0 || dispatch.bytes < 0)
    return INFINITY;
  return std::max(dispatch.flops / kFlopsPerMicrosecond,
                  dispatch.bytes / kBytesPerMicrosecond);
}

/// Whether several threads work on it.
bool CpuStream::isWorthSharing(const Dispatch &dispatch) {
  if (dispatch.tasks <= 1 || !mayShare)
    return false;
  double work = estimateWork(dispatch);
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

Status CpuStream::tune(std::vector<Measurement> *measured) {
  if (measured && candidates == 0)
    return Status(Code::Unsupported,
                  "no kernel of the package has several plans to measure: tcc "
                  "--candidates=K adds some to matrix products");
  tuning = measured;
  return wait();
}

Status CpuStream::dispatch(const Dispatch &dispatch) {
  if (dispatch.alternatives.empty())
    return launch(dispatch);
  if (tuning) {
    drain();
    plans.measure(dispatch, [this](const Dispatch &one) { run(one); }, *tuning);
  }
  return launch(plans.choose(dispatch));
}

Status CpuStream::launch(const Dispatch &dispatch) {
  ++launched;
  if (dispatch.lane > 0)
    others[dispatch.lane - 1]->launch(kernels[dispatch.kernel], dispatch,
                                      launched);
  else if (recording)
    traceLaunch(dispatch);
  else
    run(dispatch);
  return Status();
}

/// Reading the clock costs as much as all else that tracing does.
void CpuStream::traceLaunch(const Dispatch &dispatch) {
  bool isNext = recording->joinsLaunches() && dispatch.command == nextTraced;
  TraceEvent event = {.begin = isNext ? lastTraceEnd : readTraceClock(),
                      .command = dispatch.command,
                      .flops = dispatch.flops,
                      .bytes = dispatch.bytes};
  run(dispatch);
  event.end = lastTraceEnd = readTraceClock();
  nextTraced = dispatch.command + 1;
  recording->add(event);
}

/// On the caller's threads.
void CpuStream::run(const Dispatch &dispatch) {
  bool isShared = isWorthSharing(dispatch);
  int workers = isShared ? runner.threads() : 1;
  placeArguments(dispatch, workers);
  Task task = {kernels[dispatch.kernel], dispatch, *this};
  // With one task per range the first fault does not depend on the threads.
  int64_t ranges = workers > 1 ? workers * kRangesPerThread : 1;
  int64_t grain =
      dispatch.mayFault ? 1 : std::max<int64_t>(dispatch.tasks / ranges, 1);
  if (isShared)
    runner.run(dispatch.tasks, grain, runTask, &task);
  else
    for (int64_t first = 0; first < dispatch.tasks; first += grain)
      runTask(&task, first, first + grain, 0);
  if (dispatch.mayFault && dispatch.tasks > 0)
    findFault(dispatch, workers);
}

/// Finds the first fault of the workers that took part.
void CpuStream::findFault(const Dispatch &dispatch, int workers) {
  auto taking = std::span(faults).first(workers);
  auto first = std::ranges::min_element(taking, {}, &WorkerFault::task);
  if (first->task == INT64_MAX || current->fault)
    return;
  fault = {launched, {dispatch.command, first->value}};
  current->fault = fault.fault;
}

/// Does the work of lane 0 and adds its event.
template <typename Work>
void CpuStream::traceWork(TraceEvent event, Work work) {
  event.begin = readTraceClock();
  work();
  bool isWait = event.cause != TraceEvent::kNone;
  event.end = isWait ? readTraceClockInOrder() : readTraceClock();
  recording->add(event);
}

Status CpuStream::transfer(const Transfer &transfer) {
  auto move = [&] {
    if (transfer.bytes > 0) // an empty tensor may lie nowhere
      std::memmove(transfer.to, transfer.from, transfer.bytes);
  };
  if (transfer.lane > 0)
    others[transfer.lane - 1]->copy(transfer);
  else if (recording)
    traceWork({.command = transfer.command, .bytes = int64_t(transfer.bytes)},
              move);
  else
    move();
  return Status();
}

Status CpuStream::exchange(const Exchange &exchange) {
  if (!ranks)
    return Stream::exchange(exchange);
  if (exchange.lane > 0) {
    others[exchange.lane - 1]->exchange(exchange, *ranks);
    return Status();
  }
  Status status;
  auto work = [&] { status = exchangeBetween(*ranks, exchange); };
  if (recording)
    traceWork({.command = exchange.command, .bytes = int64_t(exchange.bytes())},
              work);
  else
    work();
  return status;
}

Status CpuStream::record(const Mark &mark) {
  HostEvent &event = events[mark.event];
  recorders[mark.event] = mark.command;
  if (mark.lane > 0)
    others[mark.lane - 1]->record(event);
  else
    event.record(event.give());
  return Status();
}

Status CpuStream::await(const Mark &mark) {
  HostEvent &event = events[mark.event];
  TraceEvent traced = {.command = mark.command, .cause = recorders[mark.event]};
  if (mark.lane > 0)
    others[mark.lane - 1]->wait(event, traced);
  else if (recording)
    traceWork(traced, [&] { event.await(event.last()); });
  else
    event.await(event.last());
  return Status();
}

Status CpuStream::setTrace(Trace *trace) {
  Status status = wait();
  tracing = trace;
  recordInto(trace);
  return status;
}

/// While lanes have nothing to do.
void CpuStream::recordInto(Trace *trace) {
  if (std::exchange(recording, trace) == trace)
    return;
  for (size_t i = 0; i < others.size(); ++i)
    others[i]->trace(trace, static_cast<uint32_t>(i + 1));
}

Result<std::unique_ptr<Stream>>
CpuDevice::createStream(std::span<const EntryPlan> entries,
                        const StreamOptions &options) {
  KernelPlans plans(program, fastest, cpuName, options.runner->threads());
  auto stream = std::make_unique<CpuStream>(
      kernels, std::move(plans), *options.runner, options.communicator);
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
