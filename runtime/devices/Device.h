//===- Device.h - Where entry points run ------------------------*- C++ -*-===//
//
// The executor walks the commands of a package; a device does what they come
// to, and has the memory it is done in. It reads no table of an entry.
// Addresses of a device that is not the host are never read or written but
// through it.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_DEVICE_H
#define TCC_RUNTIME_DEVICES_DEVICE_H

#include "runtime/base/Memory.h"
#include "runtime/base/PlannedMemory.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/package/DType.h"
#include "runtime/package/Tunings.h"
#include "runtime/ranks/CollectiveKind.h"
#include "runtime/trace/Trace.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace tcc::runtime {

class Communicator;

/// What a device has to know of an entry before it runs it.
struct EntryPlan {
  size_t buffers = 0;   ///< of a launch, at most
  size_t sizes = 0;     ///< likewise
  size_t faulting = 0;  ///< launches that may fault
  uint64_t shifted = 0; ///< bytes of a copy between places that may overlap
  uint64_t workerScratchBytes = 0; ///< per thread of the host
  uint64_t workspaceBytes = 0; ///< of libraries, for each lane that launches
  size_t lanes = 1;
  size_t launchingLanes = 1; ///< those from this one on launch nothing
  size_t events = 0;
  size_t collectives = 0;
  size_t treeSums = 0;   ///< collectives that add up in a tree over the ranks
  size_t candidates = 0; ///< of all launches
  /// For each command that is a launch: bytes of its buffers at most.
  std::vector<std::vector<uint64_t>> rooms;
};

/// Another kernel that does the same, and its number of tasks.
struct Alternative {
  uint32_t kernel; ///< index into Program.kernels
  int64_t tasks;
};

/// A launch with the arguments that it has now.
struct Dispatch {
  uint32_t command; ///< its number in the entry
  uint32_t lane;
  uint32_t kernel;           ///< index into Program.kernels
  bool mayFault;             ///< the stream sets the last buffer
  int64_t tasks;             ///< or blocks of a grid
  std::span<void *> buffers; ///< addresses
  std::span<int64_t> sizes;  ///< arguments after them
  int64_t flops = -1;        ///< -1: not known, or one task, and not asked for
  int64_t bytes = -1;        ///< likewise: bytes read and written
  std::span<const Alternative> alternatives = {};
};

/// A copy between buffers of the device, which may overlap.
struct Transfer {
  uint32_t command; ///< its number in the entry
  uint32_t lane;
  void *to;
  const void *from;
  size_t bytes;
};

/// What all ranks do together, each with buffers of its own: see Communicator.
struct Exchange {
  uint32_t command; ///< its number in the entry
  uint32_t lane;
  CollectiveKind kind;
  const void *from;
  void *to;
  size_t count; ///< elements
  DType dtype;
  int root = 0;                   ///< of a broadcast
  SumOrder order = SumOrder::Any; ///< of an all-reduce
  std::string_view of = {}; ///< as Communicator has it; as long as the package

  /// The bytes of `count` elements: a side with those of all ranks has more.
  size_t bytes() const { return count * traitsOf(dtype).bytes; }
};

/// A record of an event, or a wait for its last one.
struct Mark {
  uint32_t command; ///< its number in the entry
  uint32_t lane;
  uint32_t event;
};

/// A launch that met a bad index.
struct Fault {
  uint32_t command; ///< its number in the entry
  int64_t index;
};

/// A run of an entry. What is given to the stream for it is a function of the
/// sizes and addresses, unless it reads what the device computed.
struct Run {
  size_t entry = 0;         ///< among those that the stream was made for
  bool mayReplay = false;   ///< it reads nothing
  std::span<int64_t> sizes; ///< slots; all but symbols are set meanwhile
  std::span<std::byte *const> addresses = {}; ///< of the buffers
  size_t symbols = 0;
  /// Operations of its launches, as far as they are known: whole, and exact
  /// below 2^53. Set meanwhile, as sizes are.
  double flops = 0;
  /// A stream of the caller, as the device has them (CUstream): the run begins
  /// after what it was given before, and what it is given after `seal` begins
  /// after the run. Without one the host waits.
  std::optional<void *> caller = {};
  /// The first launch, in the order of commands, that met a bad index: set as
  /// soon as the device knows. The launch itself goes on safely.
  std::optional<Fault> fault = {};
};

/// What runs give a device to do. A run begins after the one before; the
/// commands of one lane are done in their order, those of several lanes side by
/// side where no event orders them. One thread at a time; all memory is
/// allocated when it is made, or the first time that a run is seen.
///
///   upload(run, ...)       what the run reads
///   begin(run)             false: the commands follow
///     dispatch, transfer, exchange, record, await, read
///   end(run, status)
///   download(...)          what it made
///   seal(run)              the host may go on, also with another run
///   finish(run)
class Stream {
public:
  virtual ~Stream() = default;

  /// What is given to it next begins after what the run's caller has given its
  /// stream so far; `begin` does the same.
  virtual Status follow(const Run &run) = 0;
  /// Whether the stream does again what it was given for such a run before:
  /// then the run is given whole, its sizes and flops are set and no `end`
  /// follows.
  virtual Result<bool> begin(Run &run) = 0;
  virtual Status dispatch(const Dispatch &dispatch) = 0;
  virtual Status transfer(const Transfer &transfer) = 0;
  /// Where it fails, `end` returns the error. Without several ranks it is a
  /// copy, or nothing in place: a device without collectives has no more.
  virtual Status exchange(const Exchange &exchange) {
    if (exchange.from == exchange.to)
      return Status();
    return transfer({exchange.command, exchange.lane, exchange.to,
                     exchange.from, exchange.bytes()});
  }
  /// The event is that the lane has done what it was given so far.
  virtual Status record(const Mark &mark) = 0;
  /// The lane goes on after the event's last record.
  virtual Status await(const Mark &mark) = 0;
  /// All commands are given, or an error ended that; returns the error, or the
  /// stream's own. What follows comes after all lanes.
  virtual Status end(Run &run, Status given) = 0;

  /// A copy between buffers of the device outside runs.
  virtual Status copy(void *to, const void *from, size_t bytes) = 0;

  /// What a run will read; it is copied beside other runs. The host's memory
  /// may change once this returns.
  virtual Status upload(Run &run, void *to, const void *from, size_t bytes) = 0;
  /// To the host's memory, once `finish` returns; of Device::staging best.
  virtual Status download(void *to, const void *from, size_t bytes) = 0;
  /// To the host's memory, at once, after what lane 0 was given; knows its
  /// faults so far.
  virtual Status read(void *to, const void *from, size_t bytes) = 0;
  /// Waits for everything so far; knows faults.
  virtual Status wait() = 0;
  virtual Status seal(Run &run) = 0;
  /// Waits for the run, and for everything if it is not sealed; knows faults.
  virtual Status finish(Run &run) = 0;
  /// Waits for everything, whatever became of it: what runs used may go.
  virtual void drain() = 0;

  /// From now on each way to do the works of runs is timed, once for a work,
  /// and added to `measured`, which outlives that; until null is given. What
  /// runs compute meanwhile means nothing. An error where there is one way.
  virtual Status tune(std::vector<Measurement> *) {
    return Status(Code::Unsupported,
                  "this device has one way to do each thing: its kernels");
  }

  /// The most that any of the entries has.
  virtual size_t laneCount() const = 0;
  /// Waits for everything. From now on what lanes do in runs is added to
  /// `trace`, which has as many lanes at least, at last when the run is
  /// finished; until null is given. Devices still replay what they can.
  Status trace(Trace *trace) {
    if (trace && trace->lanes() < laneCount())
      return makeError(Code::Usage, "a trace has ", trace->lanes(),
                       " lanes, expected ", laneCount());
    return setTrace(trace);
  }
  bool isTraced() const { return tracing != nullptr; }

  /// Adds what runs need beside the arena.
  virtual void addPlanned(PlannedMemory &planned) const = 0;

protected:
  /// `trace`, of a trace that has lanes enough.
  virtual Status setTrace(Trace *trace) = 0;

  Trace *tracing = nullptr;
};

struct StreamOptions {
  /// The pool of a device that runs on the host's threads; outlives the stream.
  TaskRunner *runner = nullptr;
  Allocator allocator = systemAllocator(); ///< of the host's memory
  /// Connects the ranks that run the entries together; outlives the stream,
  /// which alone uses it from the begin of a run to its end. Null for one rank.
  Communicator *communicator = nullptr;
};

/// Shared by threads.
class Device {
public:
  virtual ~Device() = default;

  /// As `--device` names it.
  virtual std::string_view name() const = 0;
  /// The libraries that are used in place of kernels; empty if none is.
  virtual std::string_view library() const { return {}; }
  /// What its user should know; empty if nothing.
  virtual std::string_view note() const { return {}; }
  /// The ordinal of a CUDA device, as DLPack has it; -1 for the host.
  virtual int ordinal() const = 0;
  /// Its addresses are the host's: nothing need be copied.
  bool isHost() const { return ordinal() < 0; }

  /// An allocator of the device's memory; `host` is the host's allocator.
  virtual Allocator allocator(const Allocator &host) = 0;
  /// An allocator of host memory that copies from the device do not wait for.
  virtual Allocator staging(const Allocator &host) = 0;
  /// A stream for runs of the entries. Code::Unsupported for several ranks if
  /// the device has no collectives.
  virtual Result<std::unique_ptr<Stream>>
  createStream(std::span<const EntryPlan> entries,
               const StreamOptions &options) = 0;

  /// These wait until it is done.
  virtual Status write(void *to, const void *from, size_t bytes) = 0;
  virtual Status read(void *to, const void *from, size_t bytes) = 0;
  virtual Status clear(void *at, size_t bytes) = 0;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_DEVICE_H
