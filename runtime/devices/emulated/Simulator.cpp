#include "runtime/devices/emulated/Simulator.h"

#include <cstring>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;

bool Simulator::isPinned(const void *address, size_t bytes) const {
  uint64_t first = reinterpret_cast<uint64_t>(address);
  auto block = pinned.upper_bound(first);
  if (block == pinned.begin())
    return false;
  --block;
  return first + bytes <= block->first + block->second;
}

/// Places of copies lie in memory that is there; either side may be the
/// host's.
Status Simulator::checkPlaces(const Operation &operation) const {
  auto check = [&](uint64_t address) {
    return memory.isInRange(address)
               ? memory.checkDevice(address, operation.bytes)
               : Status();
  };
  if (operation.kind == Operation::Set)
    return memory.checkDevice(operation.to, operation.bytes);
  if (operation.kind != Operation::Copy)
    return Status();
  if (Status status = check(operation.to); !status.ok())
    return status;
  return check(operation.from);
}

Status Simulator::performLaunch(Stream &stream, const Operation &operation) {
  const Function &function = *operation.function;
  parameters.clear();
  for (size_t i = 0; i < function.parameters; ++i) {
    const uint64_t &value = operation.parameters[i];
    parameters.push_back(const_cast<uint64_t *>(&value));
    if (i >= function.addresses || value == 0)
      continue;
    if (Status status = memory.checkDevice(value, 0); !status.ok())
      return makeError(Code::Device, "kernel '", function.name, "', buffer ", i,
                       ": ", status.message());
  }
  return stream.emulator.launch({function.kernel, operation.blocks,
                                 operation.threads, parameters.data(),
                                 function.name});
}

Status Simulator::performWait(const Operation &operation) {
  const Event &event = *operation.event;
  if (event.done >= operation.version)
    return Status();
  return runUntil(*event.stream, &event, operation.version);
}

Status Simulator::perform(Stream &stream, const Operation &operation) {
  if (operation.kind != Operation::Record && operation.kind != Operation::Wait)
    clock += operation.microseconds;
  switch (operation.kind) {
  case Operation::Copy:
  case Operation::Set:
    if (Status status = checkPlaces(operation); !status.ok())
      return status;
    if (operation.kind == Operation::Set)
      std::memset(reinterpret_cast<void *>(operation.to), operation.value,
                  operation.bytes);
    else
      std::memcpy(reinterpret_cast<void *>(operation.to),
                  reinterpret_cast<const void *>(operation.from),
                  operation.bytes);
    return Status();
  case Operation::Launch:
    return performLaunch(stream, operation);
  case Operation::Record:
    operation.event->done = operation.version;
    operation.event->microseconds = clock;
    return Status();
  case Operation::Wait:
    return performWait(operation);
  case Operation::Call:
    return operation.call();
  case Operation::Replay:
    for (const Operation &step : operation.graph->operations)
      if (Status status = perform(stream, step); !status.ok())
        return status;
    return Status();
  }
  return Status(Code::Internal, "an unknown operation");
}

/// Does what is in the queue, up to a record of the event if there is one.
Status Simulator::runUntil(Stream &stream, const Event *event,
                           uint64_t version) {
  if (stream.isRunning)
    return Status(Code::Device, "streams wait for each other in a circle");
  stream.isRunning = true;
  Status status;
  while (status.ok() && stream.next < stream.queue.size() &&
         (!event || event->done < version))
    status = perform(stream, stream.queue[stream.next++]);
  stream.isRunning = false;
  if (stream.next == stream.queue.size() || !status.ok()) {
    stream.queue.clear();
    stream.next = 0;
  }
  return status;
}

Status Simulator::enqueue(Stream &stream, Operation operation) {
  if (Status status = checkPlaces(operation); !status.ok())
    return status;
  std::vector<Operation> &list =
      stream.captured ? stream.captured->operations : stream.queue;
  list.push_back(std::move(operation));
  return Status();
}

Status Simulator::run(Stream &stream) {
  if (stream.captured)
    return Status(Code::Device, "waiting for a stream that captures a graph");
  return runUntil(stream, /*event=*/nullptr, /*version=*/0);
}

Status Simulator::record(const std::shared_ptr<Event> &event, Stream &stream) {
  event->stream = &stream;
  Operation operation{Operation::Record};
  operation.event = event;
  operation.version = ++event->recorded;
  return enqueue(stream, std::move(operation));
}

Status Simulator::wait(Stream &stream, const std::shared_ptr<Event> &event) {
  if (!event->stream)
    return Status(); // never recorded
  if (stream.captured)
    return Status(Code::Device, "a graph waits for an event outside it");
  Operation operation{Operation::Wait};
  operation.event = event;
  operation.version = event->recorded;
  return enqueue(stream, std::move(operation));
}

Status Simulator::synchronize(Event &event) {
  if (event.done >= event.recorded)
    return Status();
  return runUntil(*event.stream, &event, event.recorded);
}
