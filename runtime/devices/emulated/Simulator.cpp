#include "runtime/devices/emulated/Simulator.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <span>
#include <thread>
#include <utility>

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

HostClock::HostClock() {
  const char *given = std::getenv("TCC_EMULATED_CLOCK");
  isReal = given && std::string_view(given) == "real";
}

double HostClock::now() const {
  std::chrono::duration<double, std::micro> passed = Clock::now() - start;
  return isReal ? passed.count() : waited;
}

void HostClock::waitUntil(double time) {
  waited = std::max(waited, time);
  if (isReal)
    std::this_thread::sleep_until(
        start + std::chrono::duration_cast<Clock::duration>(
                    std::chrono::duration<double, std::micro>(time)));
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

Status Simulator::performWait(Stream &stream, const Operation &operation) {
  const Event &event = *operation.event;
  Status status;
  if (event.done < operation.version)
    status = runUntil(*event.stream, &event, operation.version);
  stream.clock = std::max(stream.clock, event.microseconds);
  return status;
}

/// A line of TCC_EMULATED_TIMES, for tests: what a stream did between two times
/// of its clock.
static void noteWork(const Operation &operation, double begin, double end) {
  static const char *path = std::getenv("TCC_EMULATED_TIMES");
  if (!path)
    return;
  static std::ofstream file(path, std::ios::app);
  if (operation.kind == Operation::Launch)
    file << "launch " << operation.function->name;
  else
    file << "copy " << operation.bytes;
  file << ' ' << begin << ' ' << end << std::endl;
}

Status Simulator::perform(Stream &stream, const Operation &operation) {
  stream.clock = std::max(stream.clock, operation.given);
  switch (operation.kind) {
  case Operation::Record:
    operation.event->done = operation.version;
    operation.event->microseconds = stream.clock;
    return Status();
  case Operation::Wait:
    return performWait(stream, operation);
  case Operation::Replay:
    stream.clock += operation.microseconds;
    return replay(stream, *operation.graph);
  case Operation::Copy:
  case Operation::Launch:
    noteWork(operation, stream.clock, stream.clock + operation.microseconds);
    [[fallthrough]];
  case Operation::Set:
  case Operation::Call:
    stream.clock += operation.microseconds;
    return performWork(stream, operation);
  }
  return Status(Code::Internal, "an unknown operation");
}

/// Another thread may read a word of the host while it is written.
static bool isWord(const Operation &operation) {
  constexpr size_t kWord = sizeof(uint64_t);
  return operation.bytes == kWord &&
         (operation.to | operation.from) % kWord == 0;
}

Status Simulator::performWork(Stream &stream, const Operation &operation) {
  if (operation.kind == Operation::Launch)
    return performLaunch(stream, operation);
  if (operation.kind == Operation::Call)
    return operation.call(stream.clock);
  if (Status status = checkPlaces(operation); !status.ok())
    return status;
  auto *to = reinterpret_cast<void *>(operation.to);
  if (operation.kind == Operation::Set)
    std::memset(to, operation.value, operation.bytes);
  else if (isWord(operation))
    std::atomic_ref(*static_cast<uint64_t *>(to))
        .store(*reinterpret_cast<const uint64_t *>(operation.from),
               std::memory_order_release);
  else
    std::memcpy(to, reinterpret_cast<const void *>(operation.from),
                operation.bytes);
  return Status();
}

bool Stream::canGoOn() const {
  if (isRunning || captured || isDone())
    return false;
  const Operation &operation = queue[next];
  return operation.kind != Operation::Wait ||
         operation.event->done >= operation.version;
}

/// Where streams are early, does what others can do before `stream` goes on.
Status Simulator::runOthers(const Stream &stream) {
  bool goesOn = stream.schedule.order == Schedule::Order::reverse;
  while (std::exchange(goesOn, false))
    for (size_t i = streams.size(); i-- > 0;)
      while (streams[i] != &stream && streams[i]->canGoOn()) {
        Stream &other = *streams[i];
        other.isRunning = goesOn = true;
        Status status = perform(other, other.queue[other.next++]);
        other.isRunning = false;
        if (!status.ok())
          return status;
      }
  return Status();
}

/// Does what is in the queue, up to a record of the event if there is one.
Status Simulator::runUntil(Stream &stream, const Event *event,
                           uint64_t version) {
  if (stream.isRunning)
    return Status(Code::Device, "streams wait for each other in a circle");
  stream.isRunning = true;
  Status status;
  while (status.ok() && !stream.isDone() && (!event || event->done < version)) {
    status = runOthers(stream);
    if (status.ok())
      status = perform(stream, stream.queue[stream.next++]);
  }
  stream.isRunning = false;
  if (stream.isDone() || !status.ok()) {
    stream.queue.clear();
    stream.next = 0;
  }
  return status;
}

Status Simulator::enqueue(Stream &stream, Operation operation) {
  if (Status status = checkPlaces(operation); !status.ok())
    return status;
  operation.given = stream.captured ? 0 : hostClock.now();
  std::vector<Operation> &list =
      stream.captured ? stream.captured->branches[stream.branch] : stream.queue;
  list.push_back(std::move(operation));
  return Status();
}

Status Simulator::run(Stream &stream) {
  if (stream.captured)
    return Status(Code::Device, "waiting for a stream that captures a graph");
  Status status = runUntil(stream, /*event=*/nullptr, /*version=*/0);
  hostClock.waitUntil(stream.clock);
  return status;
}

Status Simulator::record(const std::shared_ptr<Event> &event, Stream &stream) {
  Operation operation{Operation::Record};
  event->graph = stream.captured;
  event->captured.reset();
  operation.event = event;
  if (Graph *graph = stream.captured.get()) {
    operation.event = event->captured = std::make_shared<Event>();
    graph->events.push_back(event->captured);
    event->captured->branch = stream.branch;
    event->captured->place = graph->branches[stream.branch].size() + 1;
  } else {
    event->stream = &stream;
  }
  operation.version = ++operation.event->recorded;
  return enqueue(stream, std::move(operation));
}

Status Simulator::recordExternal(const std::shared_ptr<Event> &event,
                                 Stream &stream) {
  Operation operation{Operation::Record};
  operation.event = event;
  event->stream = &stream;
  operation.version = ++event->recorded;
  return enqueue(stream, std::move(operation));
}

Status Simulator::wait(Stream &stream, const std::shared_ptr<Event> &event) {
  Operation operation{Operation::Wait};
  operation.event = event;
  if (event->captured) {
    if (Status status = joinCapture(stream, event->graph.lock()); !status.ok())
      return status;
    operation.event = event->captured;
  } else if (!event->stream) {
    return Status(); // never recorded
  } else if (stream.captured) {
    return Status(Code::Device, "a graph waits for an event outside it");
  }
  operation.version = operation.event->recorded;
  return enqueue(stream, std::move(operation));
}

Status Simulator::synchronize(Event &event) {
  if (event.captured)
    return Status(Code::Device, "waiting for an event of a graph");
  Status status;
  if (event.done < event.recorded)
    status = runUntil(*event.stream, &event, event.recorded);
  hostClock.waitUntil(event.microseconds);
  return status;
}

//===----------------------------------------------------------------------===//
// Graphs
//===----------------------------------------------------------------------===//

Status Simulator::beginCapture(Stream &stream) {
  if (stream.captured)
    return Status(Code::Device, "the stream captures already");
  auto graph = std::make_shared<Graph>();
  graph->isOpen = true;
  return joinCapture(stream, graph);
}

/// A stream that waits for an event of a graph goes on in the graph.
Status Simulator::joinCapture(Stream &stream,
                              const std::shared_ptr<Graph> &graph) {
  if (!graph || !graph->isOpen || (stream.captured && stream.captured != graph))
    return Status(Code::Device, "waiting for an event of another graph");
  if (stream.captured)
    return Status();
  stream.captured = graph;
  stream.branch = graph->branches.size();
  graph->branches.emplace_back();
  graph->capturing.push_back(&stream);
  return Status();
}

/// Whether all that the branches do is done when the first one is.
static bool isJoined(const Graph &graph) {
  std::vector<size_t> joined(graph.branches.size());
  joined[0] = graph.branches[0].size();
  for (bool goesOn = true; std::exchange(goesOn, false);)
    for (size_t i = 0; i < joined.size(); ++i)
      for (const Operation &operation :
           std::span(graph.branches[i]).first(joined[i])) {
        if (operation.kind != Operation::Wait)
          continue;
        size_t &other = joined[operation.event->branch];
        goesOn |= other < operation.event->place;
        other = std::max(other, operation.event->place);
      }
  for (size_t i = 0; i < joined.size(); ++i)
    if (joined[i] < graph.branches[i].size())
      return false;
  return true;
}

Result<std::shared_ptr<Graph>> Simulator::endCapture(Stream &stream) {
  if (!stream.captured || stream.branch != 0)
    return Status(Code::Device, "the stream does not capture");
  std::shared_ptr<Graph> graph = stream.captured;
  for (Stream *one : graph->capturing)
    one->captured.reset();
  graph->capturing.clear();
  graph->isOpen = false;
  if (!isJoined(*graph))
    return Status(Code::Device, "a stream of a graph is not joined");
  return graph;
}

/// The first branch is done by the stream, the others by streams of their own.
Status Simulator::replay(Stream &stream, const Graph &graph) {
  std::vector<std::unique_ptr<Stream>> others;
  size_t known = streams.size();
  for (size_t i = 1; i < graph.branches.size(); ++i) {
    others.push_back(std::make_unique<Stream>(stream.schedule));
    others.back()->queue = graph.branches[i];
    others.back()->clock = stream.clock;
    add(*others.back());
  }
  for (const std::shared_ptr<Event> &event : graph.events) {
    event->done = 0;
    event->stream = event->branch ? others[event->branch - 1].get() : &stream;
  }
  Status status;
  for (const Operation &operation : graph.branches[0]) {
    if (status.ok() && !others.empty())
      status = runOthers(stream);
    if (status.ok())
      status = perform(stream, operation);
  }
  streams.resize(known);
  return status;
}
