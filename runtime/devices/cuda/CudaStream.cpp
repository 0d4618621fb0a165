#include "runtime/devices/cuda/CudaStream.h"

#include "runtime/base/Alignment.h"
#include "runtime/devices/cuda/DeviceCopy.h"

#include <algorithm>
#include <climits>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// What `read` copies at most.
static constexpr size_t kMaxElementBytes = 64;

Result<std::unique_ptr<Stream>>
CudaStream::create(CudaDevice &device, std::span<const EntryPlan> entries,
                   Communicator *communicator) {
  std::unique_ptr<CudaStream> stream(new CudaStream(device));
  if (Status status = stream->allocate(entries); !status.ok())
    return status;
  if (communicator)
    if (Status status = stream->openRanks(*communicator, entries); !status.ok())
      return status;
  return std::unique_ptr<Stream>(std::move(stream));
}

Status CudaStream::allocate(std::span<const EntryPlan> entries) {
  size_t most = 0;
  uint64_t shifted = 0, workspaces = 0;
  for (const EntryPlan &entry : entries) {
    most = std::max(most, entry.buffers + entry.sizes);
    slotCount = std::max(slotCount, entry.faulting);
    workspaces = std::max(workspaces, entry.workspaceBytes);
    shifted = std::max(shifted, entry.shifted);
  }
  parameters.resize(most);
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  if (Status status = device.check(driver.streamCreate(&uploads, kNonBlocking),
                                   "creating a stream");
      !status.ok())
    return status;
  if (Status status = createLanes(entries); !status.ok())
    return status;
  return reserveMemory(std::min<uint64_t>(shifted, kPassageBytes), workspaces);
}

/// A stream for each, and what libraries keep for it.
Status CudaStream::createLanes(std::span<const EntryPlan> entries) {
  size_t count = 1, launching = 1, events = 0;
  for (const EntryPlan &entry : entries) {
    count = std::max(count, entry.lanes);
    launching = std::max(launching, entry.launchingLanes);
    events = std::max(events, entry.events);
  }
  for (size_t i = 0; i < launching; ++i)
    libraryCalls.push_back(std::make_unique<LibraryCalls>(device, entries));
  Error error = lanes.create(count, events);
  stream = lanes[0];
  return device.check(error, "creating streams");
}

Status CudaStream::reserveMemory(uint64_t shifted, uint64_t workspaces) {
  struct Piece {
    Memory &memory;
    uint64_t bytes;
    Allocator allocator;
    const char *name;
  };
  Allocator onDevice = device.allocator({}), pinned = device.staging({});
  passageBytes = alignTensor(shifted);
  workspaceBytes = alignWorkspace(workspaces);
  size_t allWorkspaces = 0;
  if (workspaceBytes < workspaces ||
      __builtin_mul_overflow(workspaceBytes, libraryCalls.size(),
                             &allWorkspaces))
    return makeError(Code::OutOfMemory, "a library's workspace of ", workspaces,
                     " bytes is too large");
  for (const Piece &piece :
       {Piece{element, kMaxElementBytes, pinned, "an element"},
        Piece{slots, slotCount * sizeof(FaultSlot), onDevice,
              "places for faults"},
        Piece{passage, passageBytes * lanes.size(), onDevice,
              "copies on the device"},
        Piece{workspace, allWorkspaces, onDevice, "the library's workspace"}})
    if (Status status =
            piece.memory.reserve(piece.bytes, piece.allocator, piece.name);
        !status.ok())
      return status;
  for (size_t i = 0; i < libraryCalls.size(); ++i)
    libraryCalls[i]->setWorkspace(
        {workspace.data() + i * workspaceBytes, workspaceBytes});
  return device.clear(slots.data(), slots.size());
}

/// Handles go while the context is current.
CudaStream::~CudaStream() {
  auto active = device.activate();
  if (!active.ok())
    return;
  drain();
  graphs.clear();
  ranks.reset();
  libraryCalls.clear();
  tuner.reset();
  for (auto &flight : flights)
    flight->timeline.reset(); // its events need the device, too
  for (auto &flight : flights)
    for (EventHandle event :
         {flight->uploaded, flight->done, flight->given,
          flight->timedUpload.begin, flight->timedUpload.end})
      if (event)
        driver.eventDestroy(event);
  lanes.destroy();
  if (uploads)
    driver.streamDestroy(uploads);
}

void CudaStream::drain() {
  auto active = device.activate();
  if (!active.ok())
    return;
  if (uploads)
    driver.streamSynchronize(uploads);
  lanes.synchronize();
}

/// Made the first time that a run is seen.
Result<CudaStream::Flight *> CudaStream::flightOf(const Run &run) {
  for (auto &flight : flights)
    if (flight->run == &run)
      return flight.get();
  // What it holds goes with the stream, also where this fails.
  Flight &flight = *flights.emplace_back(std::make_unique<Flight>());
  flight.faulting.reserve(slotCount);
  if (Status status = flight.slotValues.reserve(slotCount * sizeof(FaultSlot),
                                                device.staging({}), "faults");
      !status.ok())
    return status;
  for (EventHandle *event : {&flight.uploaded, &flight.done, &flight.given})
    if (Status status = device.check(driver.eventCreate(event, kNoTiming),
                                     "creating an event");
        !status.ok())
      return status;
  flight.run = &run;
  return &flight;
}

//===----------------------------------------------------------------------===//
// Runs
//===----------------------------------------------------------------------===//

Status CudaStream::follow(const Run &run) {
  if (!run.caller)
    return Status();
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> flight = flightOf(run);
  if (!flight.ok())
    return flight.takeStatus();
  Error error = driver.eventRecord((*flight)->given,
                                   static_cast<StreamHandle>(*run.caller));
  if (error == kSuccess)
    error = driver.streamWaitEvent(stream, (*flight)->given, /*flags=*/0);
  return device.check(error, "waiting for the caller's stream");
}

Result<bool> CudaStream::begin(Run &run) {
  auto activated = device.activate();
  if (!activated.ok())
    return activated.takeStatus();
  run.fault.reset();
  Result<Flight *> flight = flightOf(run);
  if (!flight.ok())
    return flight.takeStatus();
  if (Status status = follow(run); !status.ok())
    return status;
  if (std::ranges::any_of(libraryCalls, &LibraryCalls::isFull,
                          [](auto &calls) -> auto & { return *calls; }))
    if (Status status = dropPlans(); !status.ok())
      return status;
  current = *flight;
  current->isSealed = false;
  current->fault.reset();
  current->faulting.clear();
  current->areSlotsRead = false;
  if (Status status = beginExchanges(); !status.ok())
    return status;
  if (Status status = awaitUploads(); !status.ok())
    return status;
  if (Status status = chooseGraph(run); !status.ok())
    return status;
  if (graph && graph->exec) {
    if (Status status = replay(run); !status.ok())
      return status;
    return true;
  }
  if (Status status =
          device.check(lanes.begin(chooseTimeline()), "beginning lanes");
      !status.ok())
    return end(run, std::move(status));
  given = &run;
  active.emplace(std::move(*activated));
  return false;
}

/// The graph to replay; one to capture, where what is given to the stream now
/// goes into; or one for later runs.
Status CudaStream::chooseGraph(Run &run) {
  isTooLong = false;
  graph = nullptr;
  if (!run.mayReplay || tuner)
    return Status();
  graph = graphs.find(run);
  if (!graph)
    graph = &graphs.insert(run);
  if (graph->exec || !graph->mayCapture)
    return Status();
  Status status =
      device.check(driver.streamBeginCapture(stream, kCaptureThreadLocal),
                   "capturing a graph");
  isCapturing = status.ok();
  return status;
}

/// Once nothing uses them. The traces of runs that replayed one are taken
/// first, since the graph has their events.
Status CudaStream::dropGraphs() {
  Status status =
      device.check(driver.streamSynchronize(stream), "waiting for the device");
  for (auto &flight : flights)
    if (Status reported = reportTimeline(*flight); status.ok())
      status = std::move(reported);
  graphs.clear();
  return status;
}

/// With the graphs that have them.
Status CudaStream::dropPlans() {
  if (Status status = dropGraphs(); !status.ok())
    return status;
  for (auto &calls : libraryCalls)
    calls->clear();
  return Status();
}

Status CudaStream::end(Run &run, Status given) {
  Status joined = joinLanes();
  lanes.end();
  if (given.ok())
    given = joined.ok() ? readFaults() : std::move(joined);
  if (isCapturing)
    given = endCapture(run, std::move(given));
  else if (graph)
    graph->mayCapture = given.ok() && !isTooLong;
  if (!given.ok()) {
    current->traced = nullptr;
    current->timedUpload.bytes = 0;
  }
  this->given = nullptr;
  active.reset();
  return given;
}

/// What was captured runs now.
Status CudaStream::endCapture(Run &run, Status given) {
  isCapturing = false;
  GraphHandle captured = nullptr;
  Error error = driver.streamEndCapture(stream, &captured);
  if (given.ok()) {
    if (error == kSuccess)
      error = driver.graphInstantiateWithFlags(&graph->exec, captured, 0);
    given = device.check(error, "capturing a graph");
  }
  if (captured)
    driver.graphDestroy(captured);
  if (!given.ok())
    return given;
  graph->sizes.assign(run.sizes.begin(), run.sizes.end());
  graph->flops = run.flops;
  graph->faulting = current->faulting;
  graph->exchanges = current->exchanges;
  return replay(run);
}

Status CudaStream::replay(Run &run) {
  std::ranges::copy(graph->sizes, run.sizes.begin());
  run.flops = graph->flops;
  current->faulting.assign(graph->faulting.begin(), graph->faulting.end());
  current->areSlotsRead = !graph->faulting.empty();
  current->traced = graph->timeline.get();
  current->start = readTraceClock();
  current->exchanges = graph->exchanges;
  noteExchanges();
  return device.check(driver.graphLaunch(graph->exec, stream),
                      "launching a graph");
}

/// Waits for all runs; checks the slots of the one that was begun last.
Status CudaStream::wait() {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Status status = joinLanes();
  if (status.ok() && current)
    status = readFaults();
  if (status.ok())
    status = device.check(driver.streamSynchronize(stream),
                          "waiting for the device");
  if (Status lost = checkRanks(); !lost.ok())
    return lost;
  if (!status.ok() || !current)
    return status;
  status = checkFaults(*current);
  if (given)
    given->fault = current->fault;
  return status;
}

Status CudaStream::seal(Run &run) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> flight = flightOf(run);
  if (!flight.ok())
    return flight.takeStatus();
  (*flight)->isSealed = true;
  Error error = driver.eventRecord((*flight)->done, stream);
  if (error == kSuccess && run.caller)
    error = driver.streamWaitEvent(static_cast<StreamHandle>(*run.caller),
                                   (*flight)->done, /*flags=*/0);
  return device.check(error, "recording an event");
}

Status CudaStream::finish(Run &run) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> flight = flightOf(run);
  if (!flight.ok())
    return flight.takeStatus();
  Error error = (*flight)->isSealed ? driver.eventSynchronize((*flight)->done)
                                    : driver.streamSynchronize(stream);
  if (Status lost = checkRanks(); !lost.ok())
    return lost;
  if (error != kSuccess)
    return device.check(error, "waiting for the device");
  Status status = checkFaults(**flight);
  run.fault = (*flight)->fault;
  return status.ok() ? reportTimeline(**flight) : std::move(status);
}

Status CudaStream::tune(std::vector<Measurement> *measured) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  tuner.reset();
  if (!measured)
    return Status();
  auto created = Tuner::create(device, stream, *measured);
  if (!created.ok())
    return created.takeStatus();
  tuner = std::move(*created);
  return Status();
}

//===----------------------------------------------------------------------===//
// Traces
//===----------------------------------------------------------------------===//

/// Graphs have timed events in them, or have not.
Status CudaStream::setTrace(Trace *trace) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Status status = dropGraphs();
  tracing = trace;
  return status;
}

/// That of the graph which is captured, or of the run that is given.
Timeline *CudaStream::chooseTimeline() {
  if (!tracing)
    return nullptr;
  auto &place = isCapturing ? graph->timeline : current->timeline;
  if (!place)
    place = std::make_unique<Timeline>(driver);
  place->begin(lanes.size(), isCapturing);
  current->traced = place.get();
  current->start = readTraceClock();
  return place.get();
}

/// A run does not begin before the end of the one before.
Status CudaStream::reportTimeline(Flight &flight) {
  const Timeline *traced = std::exchange(flight.traced, nullptr);
  if (!tracing || tracing->isPaused() || !traced)
    return Status();
  int64_t start = std::max(flight.start, lastEnd);
  Error error = reportUpload(flight, *traced, start);
  if (error == kSuccess)
    error = traced->report(*tracing, start, lastEnd);
  return device.check(error, "tracing");
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// A slot for one launch. A run with loops may make more launches than the
/// entry has: then those so far are checked first, which no graph can do.
Status CudaStream::takeSlot(uint32_t command, void *&slot) {
  std::vector<uint32_t> &faulting = current->faulting;
  if (faulting.size() == slotCount) {
    isTooLong = true;
    if (isCapturing)
      return Status(Code::Internal, "a graph has too many launches");
    if (Status status = wait(); !status.ok())
      return status;
  }
  slot = slots.data() + faulting.size() * sizeof(FaultSlot);
  faulting.push_back(command);
  return Status();
}

Status CudaStream::readFaults() {
  if (current->faulting.empty())
    return Status();
  current->areSlotsRead = true;
  return device.check(driver.memcpyDtoHAsync(
                          current->slotValues.data(), addressOf(slots.data()),
                          current->faulting.size() * sizeof(FaultSlot), stream),
                      "reading faults");
}

/// The first slot that was read and is set is the run's fault. Later runs that
/// are under way see it, too.
Status CudaStream::checkFaults(Flight &flight) {
  for (size_t i = 0; flight.areSlotsRead && i < flight.faulting.size(); ++i) {
    FaultSlot slot;
    std::memcpy(&slot, flight.slotValues.data() + i * sizeof(slot),
                sizeof(slot));
    if (slot.flag == 0)
      continue;
    flight.fault = {flight.faulting[i], slot.value};
    break;
  }
  // Slots of a run that failed before they were read may be set as well.
  bool mustClear =
      flight.fault || (!flight.areSlotsRead && !flight.faulting.empty());
  flight.faulting.clear();
  flight.areSlotsRead = false;
  return mustClear ? clearFaults() : Status();
}

Status CudaStream::clearFaults() {
  return device.check(
      driver.memsetD8Async(addressOf(slots.data()), 0, slots.size(), stream),
      "clearing faults");
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

Status CudaStream::dispatch(const Dispatch &dispatch) {
  if (dispatch.tasks < 1)
    return Status();
  if (dispatch.tasks > INT_MAX)
    return makeError(Code::Usage, dispatch.tasks,
                     " blocks are more than a device takes");
  if (Status status = forkLane(dispatch.lane); !status.ok())
    return status;
  Result<bool> isDone = launchLibrary(dispatch);
  if (!isDone.ok())
    return isDone.takeStatus();
  if (!*isDone)
    if (Status status = launchKernel(dispatch); !status.ok())
      return status;
  return device.check(lanes.trace({.command = dispatch.command,
                                   .flops = dispatch.flops,
                                   .bytes = dispatch.bytes,
                                   .lane = dispatch.lane}),
                      "tracing");
}

/// The lane begins with the run.
Status CudaStream::forkLane(uint32_t lane) {
  return device.check(lanes.fork(lane), "beginning a lane");
}

Status CudaStream::joinLanes() {
  return device.check(lanes.join(), "ending lanes");
}

Status CudaStream::record(const Mark &mark) {
  return device.check(lanes.record(mark), "recording an event");
}

Status CudaStream::await(const Mark &mark) {
  return device.check(lanes.await(mark), "waiting for an event");
}

/// False if no library does it.
Result<bool> CudaStream::launchLibrary(const Dispatch &dispatch) {
  LibraryCalls &calls = *libraryCalls[dispatch.lane];
  auto described = calls.describe(dispatch, *given);
  if (!described.ok())
    return described.takeStatus();
  if (!*described)
    return false;
  if (tuner)
    if (Status status =
            tuner->tune(**described, {workspace.data(), workspaceBytes},
                        [&] { return launchKernel(dispatch); });
        !status.ok())
      return status;
  return calls.launch(**described, dispatch.kernel, lanes[dispatch.lane]);
}

Status CudaStream::launchKernel(const Dispatch &dispatch) {
  if (dispatch.mayFault)
    if (Status status = takeSlot(dispatch.command, dispatch.buffers.back());
        !status.ok())
      return status;
  size_t count = 0;
  for (void *&buffer : dispatch.buffers)
    parameters[count++] = &buffer;
  for (int64_t &size : dispatch.sizes)
    parameters[count++] = &size;
  const Kernel &kernel = device.code().kernels()[dispatch.kernel];
  return device.check(
      driver.launchKernel(
          kernel.function, static_cast<unsigned>(dispatch.tasks), 1, 1,
          kernel.threads, 1, 1, kernel.sharedBytes, lanes[dispatch.lane],
          parameters.data(), /*extra=*/nullptr),
      "launching a kernel");
}

/// Each lane has a passage of its own.
Status CudaStream::copyOn(uint32_t lane, void *to, const void *from,
                          size_t bytes) {
  std::span<std::byte> own = {passage.data() + lane * passageBytes,
                              passageBytes};
  return device.check(copyOnDevice(driver, to, from, bytes, own, lanes[lane]),
                      "copying on the device");
}

Status CudaStream::transfer(const Transfer &transfer) {
  if (Status status = forkLane(transfer.lane); !status.ok())
    return status;
  if (Status status =
          copyOn(transfer.lane, transfer.to, transfer.from, transfer.bytes);
      !status.ok())
    return status;
  return device.check(
      lanes.trace({.command = transfer.command,
                   .bytes = static_cast<int64_t>(transfer.bytes),
                   .lane = transfer.lane}),
      "tracing");
}

Status CudaStream::copy(void *to, const void *from, size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  return copyOn(/*lane=*/0, to, from, bytes);
}
