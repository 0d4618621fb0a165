#include "runtime/devices/cuda/CudaStream.h"

#include <algorithm>
#include <climits>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// What `read` copies at most.
static constexpr size_t kMaxElementBytes = 64;

Result<std::unique_ptr<Stream>>
CudaStream::create(CudaDevice &device,
                   std::span<const format::Entry *const> entries) {
  std::unique_ptr<CudaStream> stream(new CudaStream(device));
  if (Status status = stream->allocate(entries); !status.ok())
    return status;
  return std::unique_ptr<Stream>(std::move(stream));
}

Status CudaStream::allocate(std::span<const format::Entry *const> entries) {
  size_t most = 0;
  for (const format::Entry *entry : entries) {
    LaunchLimits limits = measureLaunches(*entry);
    most = std::max(most, limits.buffers + limits.sizes);
    slotCount = std::max(slotCount, limits.faulting);
  }
  parameters.resize(most);
  faulting.reserve(slotCount);
  if (Status status = device.activate(); !status.ok())
    return status;
  if (Status status = device.check(driver.streamCreate(&stream, kNonBlocking),
                                   "creating a stream");
      !status.ok())
    return status;
  auto allocated = PinnedMemory::allocate(driver, kMaxElementBytes);
  if (!allocated.ok())
    return allocated.takeStatus();
  element = std::move(*allocated);
  if (slotCount == 0)
    return Status();
  allocated = PinnedMemory::allocate(driver, slotCount * sizeof(Fault));
  if (!allocated.ok())
    return allocated.takeStatus();
  slotValues = std::move(*allocated);
  if (Status status = slots.reserve(slotCount * sizeof(Fault),
                                    device.allocator({}), "places for faults");
      !status.ok())
    return status;
  return device.clear(slots.data(), slots.size());
}

CudaStream::~CudaStream() {
  if (!device.activate().ok() || !stream)
    return;
  driver.streamSynchronize(stream);
  driver.streamDestroy(stream);
}

//===----------------------------------------------------------------------===//
// Walks
//===----------------------------------------------------------------------===//

/// The walk, and the copy of what its launches said of indices.
Status CudaStream::runWalk(Walk &walk) {
  faulting.clear();
  areSlotsRead = false;
  if (Status status = walk.run(); !status.ok())
    return status;
  return readFaults();
}

Status CudaStream::walk(Walk &walk) {
  if (Status status = device.activate(); !status.ok())
    return status;
  if (!walk.mayReplay)
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
  graph.faulting = faulting;
  return Status();
}

Status CudaStream::replay(Walk &walk, CachedGraph &graph) {
  std::ranges::copy(graph.sizes, walk.sizes.begin());
  faulting.assign(graph.faulting.begin(), graph.faulting.end());
  areSlotsRead = !faulting.empty();
  return device.check(driver.graphLaunch(graph.exec, stream),
                      "launching a graph");
}

Status CudaStream::finish() {
  if (Status status = device.activate(); !status.ok())
    return status;
  return synchronize();
}

/// Waits; of the slots that were read the first that says so is an error.
Status CudaStream::synchronize() {
  Status status =
      device.check(driver.streamSynchronize(stream), "waiting for the device");
  if (!status.ok())
    return status;
  status = checkFaults();
  faulting.clear();
  areSlotsRead = false;
  return status;
}

//===----------------------------------------------------------------------===//
// Faults
//===----------------------------------------------------------------------===//

/// A slot for one launch. A walk with loops may make more launches than the
/// entry has: then those so far are checked first, which no graph can do.
Status CudaStream::takeSlot(const format::Launch &launch, void *&slot) {
  if (faulting.size() == slotCount) {
    isTooLong = isCapturing;
    if (isCapturing)
      return Status(Code::Internal, "a graph has too many launches");
    if (Status status = readFaults(); !status.ok())
      return status;
    if (Status status = synchronize(); !status.ok())
      return status;
  }
  slot = slots.data() + faulting.size() * sizeof(Fault);
  faulting.push_back(&launch);
  return Status();
}

Status CudaStream::readFaults() {
  if (faulting.empty())
    return Status();
  areSlotsRead = true;
  return device.check(
      driver.memcpyDtoHAsync(slotValues.data(), addressOf(slots.data()),
                             faulting.size() * sizeof(Fault), stream),
      "reading faults");
}

Status CudaStream::checkFaults() {
  if (faulting.empty())
    return Status();
  if (!areSlotsRead) // the walk failed before
    return clearFaults();
  for (size_t i = 0; i < faulting.size(); ++i) {
    Fault fault;
    std::memcpy(&fault, slotValues.data() + i * sizeof(fault), sizeof(fault));
    if (fault.flag == 0)
      continue;
    if (Status status = clearFaults(); !status.ok())
      return status;
    return indexError(*faulting[i], fault.value);
  }
  return Status();
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
  const format::Launch &command = launch.command;
  if (launch.tasks > INT_MAX)
    return makeError(Code::Usage, "node '", nameNode(command.node()), "' has ",
                     launch.tasks, " blocks, more than a device takes");
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

/// The driver does not say what becomes of places that overlap: they are copied
/// in pieces that do not, the ones that are overwritten first.
Status CudaStream::copy(void *to, const void *from, size_t bytes) {
  if (Status status = device.activate(); !status.ok())
    return status;
  Address target = addressOf(to), source = addressOf(from);
  size_t distance = target > source ? target - source : source - target;
  size_t piece = distance < bytes && distance > 0 ? distance : bytes;
  for (size_t done = 0; done < bytes; done += piece) {
    size_t count = std::min(piece, bytes - done);
    size_t at = target > source ? bytes - done - count : done;
    if (Status status = device.check(
            driver.memcpyDtoDAsync(target + at, source + at, count, stream),
            "copying on the device");
        !status.ok())
      return status;
  }
  return Status();
}

Status CudaStream::upload(void *to, const void *from, size_t bytes) {
  if (Status status = device.activate(); !status.ok())
    return status;
  return device.check(
      driver.memcpyHtoDAsync(addressOf(to), from, bytes, stream),
      "copying to the device");
}

Status CudaStream::download(void *to, const void *from, size_t bytes) {
  return device.check(
      driver.memcpyDtoHAsync(to, addressOf(from), bytes, stream),
      "copying from the device");
}

Status CudaStream::read(void *to, const void *from, size_t bytes) {
  Status status = device.check(
      driver.memcpyDtoHAsync(element.data(), addressOf(from), bytes, stream),
      "reading from the device");
  if (status.ok())
    status = readFaults();
  if (status.ok())
    status = synchronize();
  if (status.ok())
    std::memcpy(to, element.data(), bytes);
  return status;
}
