//===- Simulator.h - Streams, events and graphs without a GPU ---*- C++ -*-===//
//
// What a driver would give a GPU to do is kept in queues and done as late as
// its rules allow: when somebody waits for it. So work that nothing orders, and
// results that are read too early, show as wrong values and not now and then.
// In the context of device 1 streams that nobody waits for go as far as they
// can before one that somebody waits for: a stream is early there that is late
// elsewhere.
// Copies from and to memory that is not pinned are done at once, as a driver
// may do.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_SIMULATOR_H
#define TCC_RUNTIME_DEVICES_EMULATED_SIMULATOR_H

#include "runtime/devices/emulated/DeviceMemory.h"
#include "runtime/devices/emulated/Emulator.h"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tcc::emulated {

struct Graph;
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
  double microseconds = 0; ///< of the stream's clock, when it was done

  /// A record in a graph has an event of its own, which is done in each replay.
  /// The event and the graph of the last record, if it was captured:
  std::shared_ptr<Event> captured = {};
  std::weak_ptr<Graph> graph = {};
  /// A captured event is done after `place` operations of branch `branch`.
  size_t branch = 0, place = 0;
};

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
  std::string_view name = {}; ///< of a library's call, static
  /// The call of a library, which may move the stream's clock.
  std::function<runtime::Status(double &clock)> call = {};
  double microseconds = 1; ///< that it takes by its stream's clock
  double given = 0;        ///< by the host's clock
};

/// What kernels and calls of libraries take by the clock of a stream: libraries
/// are faster, and have a way that is faster than the one they name first.
inline constexpr double kKernelMicroseconds = 100;
inline constexpr double kFirstWayMicroseconds = 20;
inline constexpr double kSecondWayMicroseconds = 10;
/// A copy takes a microsecond and that of its bytes.
inline constexpr double kCopiedBytesPerMicrosecond = 1024;

/// What streams were given while one of them captured.
struct Graph {
  std::vector<std::vector<Operation>> branches; ///< of each stream
  bool isOpen = false;                          ///< it is being captured
  std::vector<Stream *> capturing;              ///< meanwhile: the streams
  std::vector<std::shared_ptr<Event>> events;   ///< of the records in it
};

struct Stream {
  explicit Stream(Schedule schedule) : emulator(schedule), schedule(schedule) {}

  bool isDone() const { return next == queue.size(); }
  /// Whether the next operation waits for nothing.
  bool canGoOn() const;

  Emulator emulator;
  Schedule schedule;
  double clock = 0; ///< microseconds, when the last operation was done
  std::vector<Operation> queue; ///< those before `next` are done
  size_t next = 0;
  bool isRunning = false;
  std::shared_ptr<Graph> captured; ///< while it captures
  size_t branch = 0;               ///< of the graph
};

/// The host's clock, in microseconds. It counts what the host waits for, so
/// that what is measured is the same each time; with TCC_EMULATED_CLOCK=real it
/// is that of the machine, and who waits sleeps.
class HostClock {
public:
  HostClock();

  double now() const;
  void waitUntil(double time);

private:
  using Clock = std::chrono::steady_clock;

  bool isReal;
  Clock::time_point start = Clock::now();
  double waited = 0;
};

/// The state of the device. One call at a time. The first failure stays: all
/// later calls return it. Each stream has a clock, which is moved by what it
/// does alone, and by what it waits for; so has the host, which waits for
/// streams. What is measured is the same each time.
class Simulator {
public:
  DeviceMemory memory;
  std::map<uint64_t, size_t> pinned; ///< bytes of each block, by address

  void add(Stream &stream) { streams.push_back(&stream); }
  void remove(Stream &stream) { std::erase(streams, &stream); }

  /// What `stream` is given, and streams that wait for an event of it, goes
  /// into a graph until `endCapture`.
  runtime::Status beginCapture(Stream &stream);
  /// An error if something in the graph ends after what `stream` was given.
  runtime::Result<std::shared_ptr<Graph>> endCapture(Stream &stream);

  /// Adds to the queue, or to the graph of a stream that captures.
  runtime::Status enqueue(Stream &stream, Operation operation);
  /// Does what is in the queue.
  runtime::Status run(Stream &stream);
  runtime::Status record(const std::shared_ptr<Event> &event, Stream &stream);
  /// By each replay of the graph that the stream captures.
  runtime::Status recordExternal(const std::shared_ptr<Event> &event,
                                 Stream &stream);
  runtime::Status wait(Stream &stream, const std::shared_ptr<Event> &event);
  runtime::Status synchronize(Event &event);

  bool isPinned(const void *address, size_t bytes) const;

private:
  runtime::Status runUntil(Stream &stream, const Event *event,
                           uint64_t version);
  runtime::Status runOthers(const Stream &stream);
  runtime::Status replay(Stream &stream, const Graph &graph);
  runtime::Status joinCapture(Stream &stream,
                              const std::shared_ptr<Graph> &graph);
  runtime::Status perform(Stream &stream, const Operation &operation);
  runtime::Status performWait(Stream &stream, const Operation &operation);
  runtime::Status performWork(Stream &stream, const Operation &operation);
  runtime::Status performLaunch(Stream &stream, const Operation &operation);
  runtime::Status checkPlaces(const Operation &operation) const;

  std::vector<void *> parameters; ///< of a launch
  std::vector<Stream *> streams;
  HostClock hostClock;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_SIMULATOR_H
