//===- Simulator.h - Streams, events and graphs without a GPU ---*- C++ -*-===//
//
// What a driver would give a GPU to do is kept in queues and done as late as
// its rules allow: when somebody waits for it. So work that nothing orders, and
// results that are read too early, show as wrong values and not now and then.
// Copies from and to memory that is not pinned are done at once, as a driver
// may do.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SIMULATOR_H
#define TCC_RUNTIME_DEVICES_EMULATED_SIMULATOR_H

#include "runtime/devices/emulated/DeviceMemory.h"
#include "runtime/devices/emulated/Emulator.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace tcc::emulated {

struct Stream;

/// A kernel of a loaded module.
struct Function {
  std::string name;
  EmulatedKernel kernel;
  size_t addresses, parameters; ///< as ModuleKernel
};

/// `done` reaches `recorded` when all that came before the last record is done.
struct Event {
  Stream *stream = nullptr; ///< of the last record
  uint64_t recorded = 0, done = 0;
  double microseconds = 0; ///< of the simulator's clock, when it was done
};

struct Graph;

/// One thing to do.
struct Operation {
  enum Kind { Copy, Set, Launch, Record, Wait, Replay, Call };
  Kind kind;
  uint64_t to = 0, from = 0; ///< addresses of the device or the host
  size_t bytes = 0;
  unsigned char value = 0;
  const Function *function = nullptr;
  unsigned blocks = 0, threads = 0;
  std::vector<uint64_t> parameters = {};
  /// May be destroyed before this is done.
  std::shared_ptr<Event> event = {};
  uint64_t version = 0; ///< of the event
  const Graph *graph = nullptr;
  std::function<runtime::Status()> call = {}; ///< of a library
  double microseconds = 1; ///< that the clock goes on by: see Simulator
};

/// What kernels and calls of libraries take by the simulator's clock: libraries
/// are faster, and have a way that is faster than the one they name first.
inline constexpr double kKernelMicroseconds = 100;
inline constexpr double kFirstWayMicroseconds = 20;
inline constexpr double kSecondWayMicroseconds = 10;

struct Graph {
  std::vector<Operation> operations;
};

struct Stream {
  explicit Stream(Schedule schedule) : emulator(schedule) {}

  Emulator emulator;
  std::vector<Operation> queue; ///< those before `next` are done
  size_t next = 0;
  bool isRunning = false;
  std::unique_ptr<Graph> captured; ///< while it captures
};

/// The state of the device. One call at a time. The first failure stays: all
/// later calls return it. Its clock is moved by what is done alone, so that
/// what is measured is the same each time.
class Simulator {
public:
  DeviceMemory memory;
  std::map<uint64_t, size_t> pinned; ///< bytes of each block, by address

  /// Adds to the queue, or to the graph of a stream that captures.
  runtime::Status enqueue(Stream &stream, Operation operation);
  /// Does what is in the queue.
  runtime::Status run(Stream &stream);
  runtime::Status record(const std::shared_ptr<Event> &event, Stream &stream);
  runtime::Status wait(Stream &stream, const std::shared_ptr<Event> &event);
  runtime::Status synchronize(Event &event);

  bool isPinned(const void *address, size_t bytes) const;

private:
  runtime::Status runUntil(Stream &stream, const Event *event,
                           uint64_t version);
  runtime::Status perform(Stream &stream, const Operation &operation);
  runtime::Status performWait(const Operation &operation);
  runtime::Status performLaunch(Stream &stream, const Operation &operation);
  runtime::Status checkPlaces(const Operation &operation) const;

  std::vector<void *> parameters; ///< of a launch
  double clock = 0;               ///< microseconds
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_SIMULATOR_H
