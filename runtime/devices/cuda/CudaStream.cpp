#include "runtime/devices/cuda/CudaStream.h"

#include "runtime/package/Alignment.h"

#include <algorithm>
#include <climits>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// What `read` copies at most.
static constexpr size_t kMaxElementBytes = 64;
/// What is copied at once between places that overlap: enough to keep a device
/// busy.
static constexpr uint64_t kPassageBytes = 1 << 20;

Result<std::unique_ptr<Stream>>
CudaStream::create(CudaDevice &device,
                   std::span<const format::Entry *const> entries) {
  std::unique_ptr<CudaStream> stream(new CudaStream(device));
  if (Status status = stream->allocate(entries); !status.ok())
    return status;
  return std::unique_ptr<Stream>(std::move(stream));
}

Status CudaStream::allocate(std::span<const format::Entry *const> entries) {
  size_t most = 0, workspaceBytes = 0;
  uint64_t shifted = 0;
  for (const format::Entry *entry : entries) {
    LaunchLimits limits = measureLaunches(*entry);
    most = std::max(most, limits.buffers + limits.sizes);
    slotCount = std::max(slotCount, limits.faulting);
    workspaceBytes = std::max(workspaceBytes, entry->workspace_bytes());
    shifted = std::max(shifted, limits.shifted);
  }
  parameters.resize(most);
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  for (StreamHandle *created : {&stream, &uploads})
    if (Status status = device.check(driver.streamCreate(created, kNonBlocking),
                                     "creating a stream");
        !status.ok())
      return status;
  return reserveMemory(std::min(shifted, kPassageBytes), workspaceBytes);
}

Status CudaStream::reserveMemory(uint64_t shifted, uint64_t workspaceBytes) {
  struct Piece {
    Memory &memory;
    uint64_t bytes;
    Allocator allocator;
    const char *name;
  };
  Allocator onDevice = device.allocator({}), pinned = device.staging({});
  if (!device.libraries())
    workspaceBytes = 0;
  for (const Piece &piece :
       {Piece{element, kMaxElementBytes, pinned, "an element"},
        Piece{slots, slotCount * sizeof(Fault), onDevice, "places for faults"},
        Piece{passage, shifted, onDevice, "copies on the device"},
        Piece{workspace, workspaceBytes, onDevice, "the library's workspace"}})
    if (Status status =
            piece.memory.reserve(piece.bytes, piece.allocator, piece.name);
        !status.ok())
      return status;
  libraryCalls.setWorkspace({workspace.data(), workspace.size()});
  return device.clear(slots.data(), slots.size());
}

CudaStream::~CudaStream() {
  auto active = device.activate();
  if (!active.ok())
    return;
  drain();
  graphs.clear();
  libraryCalls.clear();
  tuner.reset();
  for (auto &flight : flights)
    for (EventHandle event : {flight->uploaded, flight->done, flight->given})
      if (event)
        driver.eventDestroy(event);
  for (StreamHandle one : {uploads, stream})
    if (one)
      driver.streamDestroy(one);
}

void CudaStream::drain() {
  auto active = device.activate();
  if (!active.ok())
    return;
  for (StreamHandle one : {uploads, stream})
    if (one)
      driver.streamSynchronize(one);
}

/// Made the first time that a walk is seen.
Result<CudaStream::Flight *> CudaStream::flightOf(const Walk &walk) {
  for (auto &flight : flights)
    if (flight->walk == &walk)
      return flight.get();
  // What it holds goes with the stream, also where this fails.
  Flight &flight = *flights.emplace_back(std::make_unique<Flight>());
  flight.faulting.reserve(slotCount);
  if (Status status = flight.slotValues.reserve(slotCount * sizeof(Fault),
                                                device.staging({}), "faults");
      !status.ok())
    return status;
  for (EventHandle *event : {&flight.uploaded, &flight.done, &flight.given})
    if (Status status = device.check(driver.eventCreate(event, kNoTiming),
                                     "creating an event");
        !status.ok())
      return status;
  flight.walk = &walk;
  return &flight;
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

/// The walk, and the copy of what its launches said of indices.
Status CudaStream::runWalk(Walk &walk) {
  current->faulting.clear();
  current->areSlotsRead = false;
  if (Status status = walk.run(); !status.ok())
    return status;
  return readFaults();
}

Status CudaStream::follow(const Walk &walk) {
  if (!walk.caller)
    return Status();
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> flight = flightOf(walk);
  if (!flight.ok())
    return flight.takeStatus();
  Error error = driver.eventRecord((*flight)->given,
                                   static_cast<StreamHandle>(*walk.caller));
  if (error == kSuccess)
    error = driver.streamWaitEvent(stream, (*flight)->given, /*flags=*/0);
  return device.check(error, "waiting for the caller's stream");
}

Status CudaStream::walk(Walk &walk) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> flight = flightOf(walk);
  if (!flight.ok())
    return flight.takeStatus();
  if (Status status = follow(walk); !status.ok())
    return status;
  if (libraryCalls.isFull())
    if (Status status = dropPlans(); !status.ok())
      return status;
  current = *flight;
  current->isSealed = false;
  if (current->staged > 0) {
    Error error = driver.eventRecord(current->uploaded, uploads);
    if (error == kSuccess)
      error = driver.streamWaitEvent(stream, current->uploaded, /*flags=*/0);
    current->staged = 0;
    if (error != kSuccess)
      return device.check(error, "copying to the device");
  }
  if (!walk.mayReplay || tuner)
    return runWalk(walk);
  CachedGraph *graph = graphs.find(walk);
  if (!graph) {
    graphs.insert(walk);
    return runWalk(walk);
  }
  if (!graph->exec && !graph->isTooLong)
    if (Status status = capture(walk, *graph); !status.ok())
      return status;
  return graph->exec ? replay(walk, *graph) : runWalk(walk);
}

/// Once nothing uses them.
Status CudaStream::dropPlans() {
  if (Status status = device.check(driver.streamSynchronize(stream),
                                   "waiting for the device");
      !status.ok())
    return status;
  graphs.clear();
  libraryCalls.clear();
  return Status();
}

Status CudaStream::capture(Walk &walk, CachedGraph &graph) {
  if (Status status =
          device.check(driver.streamBeginCapture(stream, kCaptureThreadLocal),
                       "capturing a graph");
      !status.ok())
    return status;
  isCapturing = true;
  isTooLong = false;
  Status status = runWalk(walk);
  isCapturing = false;
  GraphHandle captured = nullptr;
  Error error = driver.streamEndCapture(stream, &captured);
  graph.isTooLong = isTooLong;
  if (status.ok()) {
    if (error == kSuccess)
      error = driver.graphInstantiateWithFlags(&graph.exec, captured, 0);
    status = device.check(error, "capturing a graph");
  }
  if (captured)
    driver.graphDestroy(captured);
  if (!status.ok())
    return isTooLong ? Status() : std::move(status);
  graph.sizes.assign(walk.sizes.begin(), walk.sizes.end());
  graph.faulting = current->faulting;
  return Status();
}

Status CudaStream::replay(Walk &walk, CachedGraph &graph) {
  std::ranges::copy(graph.sizes, walk.sizes.begin());
  current->faulting.assign(graph.faulting.begin(), graph.faulting.end());
  current->areSlotsRead = !graph.faulting.empty();
  return device.check(driver.graphLaunch(graph.exec, stream),
                      "launching a graph");
}

/// Waits for all walks; checks the slots of the one that runs.
Status CudaStream::wait() {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Status status = current ? readFaults() : Status();
  if (status.ok())
    status = device.check(driver.streamSynchronize(stream),
                          "waiting for the device");
  return status.ok() && current ? checkFaults(*current) : std::move(status);
}

Status CudaStream::seal(Walk &walk) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> flight = flightOf(walk);
  if (!flight.ok())
    return flight.takeStatus();
  (*flight)->isSealed = true;
  Error error = driver.eventRecord((*flight)->done, stream);
  if (error == kSuccess && walk.caller)
    error = driver.streamWaitEvent(static_cast<StreamHandle>(*walk.caller),
                                   (*flight)->done, /*flags=*/0);
  return device.check(error, "recording an event");
}

Status CudaStream::finish(Walk &walk) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> flight = flightOf(walk);
  if (!flight.ok())
    return flight.takeStatus();
  Error error = (*flight)->isSealed ? driver.eventSynchronize((*flight)->done)
                                    : driver.streamSynchronize(stream);
  if (error != kSuccess)
    return device.check(error, "waiting for the device");
  return checkFaults(**flight);
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
// Faults
//===----------------------------------------------------------------------===//

/// A slot for one launch. A walk with loops may make more launches than the
/// entry has: then those so far are checked first, which no graph can do.
Status CudaStream::takeSlot(const format::Launch &launch, void *&slot) {
  std::vector<const format::Launch *> &faulting = current->faulting;
  if (faulting.size() == slotCount) {
    isTooLong = isCapturing;
    if (isCapturing)
      return Status(Code::Internal, "a graph has too many launches");
    if (Status status = wait(); !status.ok())
      return status;
  }
  slot = slots.data() + faulting.size() * sizeof(Fault);
  faulting.push_back(&launch);
  return Status();
}

Status CudaStream::readFaults() {
  if (current->faulting.empty())
    return Status();
  current->areSlotsRead = true;
  return device.check(driver.memcpyDtoHAsync(
                          current->slotValues.data(), addressOf(slots.data()),
                          current->faulting.size() * sizeof(Fault), stream),
                      "reading faults");
}

/// Of the slots that were read the first that says so is an error. Later walks
/// that are under way see it, too.
Status CudaStream::checkFaults(Flight &flight) {
  Status status;
  for (size_t i = 0; flight.areSlotsRead && i < flight.faulting.size(); ++i) {
    Fault fault;
    std::memcpy(&fault, flight.slotValues.data() + i * sizeof(fault),
                sizeof(fault));
    if (fault.flag == 0)
      continue;
    status = indexError(*flight.faulting[i], fault.value);
    break;
  }
  // Those of a walk that failed before they were read may be set as well.
  bool mustClear =
      !status.ok() || (!flight.areSlotsRead && !flight.faulting.empty());
  flight.faulting.clear();
  flight.areSlotsRead = false;
  if (mustClear)
    if (Status cleared = clearFaults(); !cleared.ok())
      return cleared;
  return status;
}

Status CudaStream::clearFaults() {
  return device.check(
      driver.memsetD8Async(addressOf(slots.data()), 0, slots.size(), stream),
      "clearing faults");
}

//===----------------------------------------------------------------------===//
// Commands
//===----------------------------------------------------------------------===//

Status CudaStream::launch(const KernelLaunch &launch) {
  if (launch.tasks < 1)
    return Status();
  if (launch.tasks > INT_MAX)
    return makeError(Code::Usage, "node '", nameNode(launch.command.node()),
                     "' has ", launch.tasks,
                     " blocks, more than a device takes");
  Result<bool> isDone = launchLibrary(launch);
  if (!isDone.ok())
    return isDone.takeStatus();
  return *isDone ? Status() : launchKernel(launch);
}

/// False if no library does it.
Result<bool> CudaStream::launchLibrary(const KernelLaunch &launch) {
  auto described = libraryCalls.describe(launch, *current->walk->entry);
  if (!described.ok())
    return described.takeStatus();
  if (!*described)
    return false;
  if (tuner)
    if (Status status =
            tuner->tune(**described, {workspace.data(), workspace.size()},
                        [&] { return launchKernel(launch); });
        !status.ok())
      return status;
  return libraryCalls.launch(**described, launch.command.kernel(), stream);
}

Status CudaStream::launchKernel(const KernelLaunch &launch) {
  const format::Launch &command = launch.command;
  if (command.fault())
    if (Status status = takeSlot(command, launch.buffers.back()); !status.ok())
      return status;
  size_t count = 0;
  for (void *&buffer : launch.buffers)
    parameters[count++] = &buffer;
  for (int64_t &size : launch.sizes)
    parameters[count++] = &size;
  const Kernel &kernel = device.code().kernels()[command.kernel()];
  Error error = driver.launchKernel(
      kernel.function, static_cast<unsigned>(launch.tasks), 1, 1,
      kernel.threads, 1, 1, /*sharedBytes=*/0, stream, parameters.data(),
      /*extra=*/nullptr);
  if (error == kSuccess)
    return Status();
  return device.check(
      error, concat("launching node '", nameNode(command.node()), "'"));
}

/// By way of other memory if the places overlap: the driver does not say what
/// becomes of that.
Status CudaStream::copyPiece(Address to, Address from, size_t bytes) {
  bool isDisjoint = to + bytes <= from || from + bytes <= to;
  Address middle = addressOf(passage.data());
  Error error = kSuccess;
  if (!isDisjoint) {
    error = driver.memcpyDtoDAsync(middle, from, bytes, stream);
    from = middle;
  }
  if (error == kSuccess)
    error = driver.memcpyDtoDAsync(to, from, bytes, stream);
  return device.check(error, "copying on the device");
}

/// Places that overlap are copied in pieces, the ones first that are
/// overwritten: as long as the way between them, or as the passage.
Status CudaStream::copy(void *to, const void *from, size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Address target = addressOf(to), source = addressOf(from);
  size_t distance = target > source ? target - source : source - target;
  if (distance == 0)
    return Status();
  size_t piece = distance < bytes ? std::max(distance, passage.size()) : bytes;
  for (size_t done = 0; done < bytes; done += piece) {
    size_t count = std::min(piece, bytes - done);
    size_t at = target > source ? bytes - done - count : done;
    if (Status status = copyPiece(target + at, source + at, count);
        !status.ok())
      return status;
  }
  return Status();
}

/// Copies that were staged before are done before their memory is replaced.
Status CudaStream::reserveStaging(Flight &flight, size_t bytes) {
  if (flight.staging.size() >= bytes)
    return Status();
  if (Status status = device.check(driver.streamSynchronize(uploads),
                                   "copying to the device");
      !status.ok())
    return status;
  return flight.staging.reserve(2 * bytes, device.staging({}), "inputs");
}

/// Through pinned memory and a stream of its own, once the walk has read what
/// it was given before.
Status CudaStream::upload(Walk &walk, void *to, const void *from,
                          size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Result<Flight *> found = flightOf(walk);
  if (!found.ok())
    return found.takeStatus();
  Flight &flight = **found;
  Error error = kSuccess;
  if (flight.staged == 0) {
    error = driver.eventSynchronize(flight.uploaded);
    if (error == kSuccess)
      error = driver.streamWaitEvent(uploads, flight.done, /*flags=*/0);
  }
  if (error != kSuccess)
    return device.check(error, "copying to the device");
  if (Status status = reserveStaging(flight, flight.staged + bytes);
      !status.ok())
    return status;
  std::byte *staged = flight.staging.data() + flight.staged;
  std::memcpy(staged, from, bytes);
  flight.staged += alignTensor(bytes);
  return device.check(
      driver.memcpyHtoDAsync(addressOf(to), staged, bytes, uploads),
      "copying to the device");
}

Status CudaStream::download(void *to, const void *from, size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  return device.check(
      driver.memcpyDtoHAsync(to, addressOf(from), bytes, stream),
      "copying from the device");
}

Status CudaStream::read(void *to, const void *from, size_t bytes) {
  auto active = device.activate();
  if (!active.ok())
    return active.takeStatus();
  Status status = device.check(
      driver.memcpyDtoHAsync(element.data(), addressOf(from), bytes, stream),
      "reading from the device");
  if (status.ok())
    status = wait();
  if (status.ok())
    std::memcpy(to, element.data(), bytes);
  return status;
}
