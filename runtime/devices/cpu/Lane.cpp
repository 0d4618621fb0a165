#include "runtime/devices/cpu/Lane.h"

#include "runtime/devices/cpu/DefaultRounding.h"
#include "runtime/ranks/Communicator.h"

#include <algorithm>
#include <cstring>
#include <exception>

using namespace tcc;
using namespace tcc::runtime;

/// Numbers go round: one is reached by those that follow it within 2^31.
static bool isReached(uint32_t number, uint32_t by) {
  return static_cast<int32_t>(by - number) >= 0;
}

void HostEvent::record(uint32_t number) {
  // Sequentially consistent: notify_all looks who waits after the store.
  done.store(number);
  done.notify_all();
}

void HostEvent::await(uint32_t number) {
  uint32_t seen = done.load(std::memory_order_acquire);
  for (int spin = 0; !isReached(number, seen); ++spin) {
    if (spin < kIdleSpins)
      __builtin_ia32_pause();
    else
      done.wait(seen, std::memory_order_acquire);
    seen = done.load(std::memory_order_acquire);
  }
}

Status runtime::exchangeBetween(Communicator &ranks, const Exchange &call) {
  switch (call.kind) {
  case CollectiveKind::AllReduce:
    return ranks.allReduce(call.from, call.to, call.count, call.dtype, call.of,
                           call.order);
  case CollectiveKind::ReduceScatter:
    return ranks.reduceScatter(call.from, call.to, call.count, call.dtype,
                               call.of);
  case CollectiveKind::AllGather:
    return ranks.allGather(call.from, call.to, call.count, call.dtype, call.of);
  case CollectiveKind::Broadcast:
    return ranks.broadcast(call.from, call.to, call.count, call.dtype,
                           call.root, call.of);
  case CollectiveKind::Barrier: // of no program
    break;
  }
  return Status(Code::Internal, "a collective of no kind");
}

Result<std::unique_ptr<Lane>> Lane::create(size_t buffers, size_t sizes,
                                           std::byte *scratch) {
  std::unique_ptr<Lane> lane(new Lane(scratch));
  lane->commands.resize(kCapacity);
  for (Command &command : lane->commands) {
    command.buffers.resize(buffers);
    command.sizes.resize(sizes);
  }
  try {
    lane->thread = std::thread([one = lane.get()] { one->serve(); });
  } catch (const std::exception &) { // neither a thread nor memory for one
    return Status(Code::OutOfMemory, "there is no thread for another lane");
  }
  return lane;
}

Lane::~Lane() {
  if (!thread.joinable())
    return;
  next().kind = Command::Stop;
  give();
  thread.join();
}

Lane::Command &Lane::next() {
  finished.await(given.last() + 1 - kCapacity);
  return commands[given.last() % kCapacity];
}

void Lane::give() { given.record(given.give()); }

void Lane::launch(format::KernelFunction kernel, const Dispatch &dispatch,
                  uint64_t place) {
  Command &command = next();
  command.kind = Command::Launch;
  command.kernel = kernel;
  command.dispatch = dispatch;
  command.place = place;
  command.traced = {.command = dispatch.command,
                    .flops = dispatch.flops,
                    .bytes = dispatch.bytes};
  std::ranges::copy(dispatch.buffers, command.buffers.begin());
  std::ranges::copy(dispatch.sizes, command.sizes.begin());
  give();
}

void Lane::copy(const Transfer &transfer) {
  Command &command = next();
  command.kind = Command::Copy;
  command.transfer = transfer;
  command.traced = {.command = transfer.command,
                    .bytes = static_cast<int64_t>(transfer.bytes)};
  give();
}

void Lane::exchange(const Exchange &exchange, Communicator &ranks) {
  Command &command = next();
  command.kind = Command::Exchange;
  command.exchange = exchange;
  command.ranks = &ranks;
  command.traced = {.command = exchange.command,
                    .bytes = static_cast<int64_t>(exchange.bytes())};
  give();
}

void Lane::record(HostEvent &event) {
  Command &command = next();
  command.kind = Command::Record;
  command.event = &event;
  command.number = event.give();
  give();
}

void Lane::wait(HostEvent &event, const TraceEvent &traced) {
  Command &command = next();
  command.kind = Command::Wait;
  command.traced = traced;
  command.event = &event;
  command.number = event.last();
  give();
}

void Lane::drain() { finished.await(given.last()); }

void Lane::serve() {
  DefaultRounding rounding;
  for (uint32_t number = 1;; ++number) {
    given.await(number);
    Command &command = commands[(number - 1) % kCapacity];
    bool goesOn = tracing ? performTraced(command) : perform(command);
    finished.record(number);
    if (!goesOn)
      return;
  }
}

void Lane::trace(Trace *newTrace, uint32_t lane) {
  tracing = newTrace;
  number = lane;
}

bool Lane::performTraced(Command &command) {
  TraceEvent event = command.traced;
  event.lane = number;
  event.begin = readTraceClock();
  bool goesOn = perform(command);
  event.end = command.kind == Command::Wait ? readTraceClockInOrder()
                                            : readTraceClock();
  if (goesOn && command.kind != Command::Record)
    tracing->add(event);
  return goesOn;
}

/// False to stop.
bool Lane::perform(Command &command) {
  switch (command.kind) {
  case Command::Launch:
    performLaunch(command);
    return true;
  case Command::Copy:
    std::memmove(command.transfer.to, command.transfer.from,
                 command.transfer.bytes);
    return true;
  case Command::Exchange:
    if (failure.ok())
      failure = exchangeBetween(*command.ranks, command.exchange);
    return true;
  case Command::Record:
    command.event->record(command.number);
    return true;
  case Command::Wait:
    command.event->await(command.number);
    return true;
  case Command::Stop:
    return false;
  }
  return false;
}

/// With one task a call the first bad index is that of the first task.
void Lane::performLaunch(Command &command) {
  const Dispatch &dispatch = command.dispatch;
  int64_t flagAndValue[2] = {0, 0};
  if (dispatch.mayFault)
    command.buffers[dispatch.buffers.size() - 1] = flagAndValue;
  int64_t grain = dispatch.mayFault ? 1 : dispatch.tasks;
  for (int64_t first = 0; first < dispatch.tasks; first += grain) {
    command.kernel(command.buffers.data(), command.sizes.data(), first,
                   first + grain, scratch);
    if (flagAndValue[0] && fault.place == UINT64_MAX)
      fault = {command.place, {dispatch.command, flagAndValue[1]}};
  }
}
