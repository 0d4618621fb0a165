//===- Device.h - Where entry points run ------------------------*- C++ -*-===//
//
// The executor walks commands and knows addresses; a device has the memory they
// point into and does what they say. Addresses of a device that is not the host
// are never read or written but through it.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_DEVICE_H
#define TCC_RUNTIME_DEVICES_DEVICE_H

#include "runtime/base/Memory.h"
#include "runtime/base/ThreadPool.h"
#include "runtime/devices/Tunings.h"
#include "runtime/package/Program_generated.h"

#include <optional>
#include <span>
#include <vector>

namespace tcc::runtime {

/// One launch, with the arguments that it has now. The stream sets the last
/// buffer of a launch that may fault.
struct KernelLaunch {
  const format::Launch &command;
  int64_t tasks;
  std::span<void *> buffers;
  std::span<int64_t> sizes;
  std::span<const int64_t> slots = {}; ///< of the walk
};

/// The most that any launch of an entry has.
struct LaunchLimits {
  size_t buffers = 0;
  size_t sizes = 0;
  size_t faulting = 0;  ///< launches that may fault
  uint64_t shifted = 0; ///< bytes of a copy between places that may overlap
};
LaunchLimits measureLaunches(const format::Entry &entry);

/// What a launch that met a bad index ends the run with.
Status indexError(const format::Launch &launch, int64_t index);
/// The name of a command's node, for errors.
std::string_view nameNode(const flatbuffers::String *node);

/// One walk of an entry. What it gives the stream to do is a function of the
/// sizes and addresses, unless it reads what the device computed.
class Walk {
public:
  virtual ~Walk() = default;
  virtual Status run() = 0;

  const format::Entry *entry = nullptr;
  bool mayReplay = false;   ///< it reads nothing
  std::span<int64_t> sizes; ///< slots; the walk sets all but symbols
  std::span<std::byte *const> addresses; ///< of the buffers
  size_t symbols = 0;
  /// A stream of the caller, as the device has them (CUstream): the walk begins
  /// after what it was given before, and what it is given after `seal` begins
  /// after the walk. Without one the host waits.
  std::optional<void *> caller;
};

/// What walks give a device to do, done in their order. One thread at a time;
/// all memory is allocated when it is made, or the first time that a walk runs.
///
///   upload(walk, ...)   what the walk reads
///   walk(walk)
///   download(...)       what it made
///   seal(walk)          the host may go on, also with another walk
///   finish(walk)
class Stream {
public:
  virtual ~Stream() = default;

  /// What is given to it next begins after what the walk's caller has given its
  /// stream so far; `walk` does the same.
  virtual Status follow(const Walk &walk) = 0;
  /// Runs the walk, or does again what it gave the stream to do before.
  virtual Status walk(Walk &walk) = 0;
  virtual Status launch(const KernelLaunch &launch) = 0;
  /// Between buffers of the device, which may overlap.
  virtual Status copy(void *to, const void *from, size_t bytes) = 0;
  /// What a walk will read; it is copied beside other walks. The host's memory
  /// may change once this returns.
  virtual Status upload(Walk &walk, void *to, const void *from,
                        size_t bytes) = 0;
  /// To the host's memory, once `finish` returns; of Device::staging best.
  virtual Status download(void *to, const void *from, size_t bytes) = 0;
  /// To the host's memory, at once; reports faults so far.
  virtual Status read(void *to, const void *from, size_t bytes) = 0;
  /// Waits for everything so far; reports faults.
  virtual Status wait() = 0;
  virtual Status seal(Walk &walk) = 0;
  /// Waits for the walk, and for everything if it is not sealed. Of the
  /// launches that met a bad index the first is an error.
  virtual Status finish(Walk &walk) = 0;
  /// Waits for everything, whatever became of it: what walks used may go.
  virtual void drain() = 0;

  /// From now on each way to do the works of walks is timed, once for a work,
  /// and added to `measured`, which outlives that; until null is given. What
  /// walks compute meanwhile means nothing. An error where there is one way.
  virtual Status tune(std::vector<Measurement> *) {
    return Status(Code::Unsupported,
                  "this device has one way to do each thing: its kernels");
  }

  /// Bytes beside the arena that walks need.
  virtual uint64_t plannedBytes() const { return 0; }
};

struct StreamOptions {
  /// Of the host, for devices that run on its threads; outlives the stream.
  TaskRunner *runner = nullptr;
  Allocator allocator = systemAllocator(); ///< of the host's memory
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

  /// Of the device's memory; `host` is that of the host.
  virtual Allocator allocator(const Allocator &host) = 0;
  /// Of memory of the host that copies from the device do not wait for.
  virtual Allocator staging(const Allocator &host) = 0;
  /// A stream for walks of the entries.
  virtual Result<std::unique_ptr<Stream>>
  createStream(std::span<const format::Entry *const> entries,
               const StreamOptions &options) = 0;

  /// These wait until it is done.
  virtual Status write(void *to, const void *from, size_t bytes) = 0;
  virtual Status read(void *to, const void *from, size_t bytes) = 0;
  virtual Status clear(void *at, size_t bytes) = 0;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_DEVICE_H
