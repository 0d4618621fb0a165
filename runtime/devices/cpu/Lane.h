//===- Lane.h - A thread that does commands in their order ------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CPU_LANE_H
#define TCC_RUNTIME_DEVICES_CPU_LANE_H

#include "runtime/devices/Device.h"
#include "runtime/package/Format.h"

#include <atomic>
#include <thread>

namespace tcc::runtime {

/// Goes up by one with each record. What one thread awaits another one has been
/// given already: nobody waits for ever.
class HostEvent {
public:
  /// The number of the next record; by the thread that gives commands.
  uint32_t give() { return ++given; }
  /// That of the last one.
  uint32_t last() const { return given; }

  void record(uint32_t number);
  /// Spins for some 100 microseconds, then sleeps.
  void await(uint32_t number);

private:
  std::atomic<uint32_t> done{0};
  uint32_t given = 0;
};

/// Does it in this thread.
Status exchangeBetween(Communicator &ranks, const Exchange &exchange);

/// The bad index of a launch, and its place among all launches of the run.
struct OrderedFault {
  uint64_t place = UINT64_MAX; ///< UINT64_MAX: there is none
  Fault fault = {};
};

/// A lane of a program beside the caller's own. One thread gives it commands,
/// at most as many ahead as kCapacity; nothing is allocated meanwhile.
class Lane {
public:
  /// For launches with so many arguments at most; `scratch` is one worker's,
  /// and outlives the lane; null if it is given no launch. An error if the
  /// system has no more threads.
  static Result<std::unique_ptr<Lane>> create(size_t buffers, size_t sizes,
                                              std::byte *scratch);
  /// Does what it was given first.
  ~Lane();

  /// `place` is that of the launch in its run.
  void launch(format::KernelFunction kernel, const Dispatch &dispatch,
              uint64_t place);
  void copy(const Transfer &transfer);
  /// After an exchange that failed it does no others.
  void exchange(const Exchange &exchange, Communicator &ranks);
  void record(HostEvent &event);
  /// `traced` has what a trace says of it.
  void wait(HostEvent &event, const TraceEvent &traced);

  /// While it has nothing to do: from now on what it does is added to a trace,
  /// as of lane `number`; null ends that.
  void trace(Trace *newTrace, uint32_t number);

  /// Waits until all is done.
  void drain();
  /// The first bad index since the last call; after `drain`.
  OrderedFault takeFault() { return std::exchange(fault, {}); }
  /// The error of an exchange since the last call; after `drain`.
  Status takeFailure() { return std::exchange(failure, Status()); }

private:
  static constexpr uint32_t kCapacity = 256;

  struct Command {
    enum Kind { Launch, Copy, Exchange, Record, Wait, Stop } kind = Stop;
    format::KernelFunction kernel = nullptr;
    Dispatch dispatch = {};
    uint64_t place = 0; ///< of a launch
    Transfer transfer = {};
    runtime::Exchange exchange = {};
    Communicator *ranks = nullptr; ///< of an exchange
    HostEvent *event = nullptr;
    uint32_t number = 0; ///< of the event
    TraceEvent traced = {};
    std::vector<void *> buffers;
    std::vector<int64_t> sizes;
  };

  explicit Lane(std::byte *scratch) : scratch(scratch) {}

  /// The next command to fill, once there is room for it.
  Command &next();
  void give();
  void serve();
  bool perform(Command &command);
  bool performTraced(Command &command);
  void performLaunch(Command &command);

  std::byte *scratch;
  std::vector<Command> commands;  ///< a ring of kCapacity
  alignas(64) HostEvent given;    ///< as many commands
  alignas(64) HostEvent finished; ///< likewise
  OrderedFault fault;
  Status failure;
  Trace *tracing = nullptr;
  uint32_t number = 0; ///< of the lane, in traces
  std::thread thread;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_CPU_LANE_H
