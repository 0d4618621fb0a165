//===- RankCalls.h - Collectives that a device does -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_RANKCALLS_H
#define TCC_RUNTIME_DEVICES_CUDA_RANKCALLS_H

#include "runtime/devices/cuda/CudaDevice.h"
#include "runtime/devices/cuda/Group.h"
#include "runtime/ranks/Communicator.h"

#include <condition_variable>
#include <thread>

namespace tcc::runtime::cuda {

/// The collectives of a stream: a library does them on the device, the
/// communicator of the host numbers them and knows who is lost. A thread asks
/// the library for errors while others wait for the device, and ends what is
/// under way where it has one, where a rank is lost, or where a collective
/// takes longer than ranks wait for each other.
class RankCalls final : public DeviceCalls {
public:
  /// Called by all ranks at the same time, for runs of `most` collectives. The
  /// device, whose context is current, the communicator and the stream, which
  /// all of a run is joined to, live longer.
  static Result<std::unique_ptr<RankCalls>> open(CudaDevice &device,
                                                 Communicator &communicator,
                                                 StreamHandle stream,
                                                 size_t most);
  /// The context is current, and graphs with collectives are gone.
  ~RankCalls() override;

  std::string_view name() const { return library->name(); }

  /// A run begins, at whose place nothing is under way.
  void begin(Memory &progress);
  /// Numbers the `index`-th collective of a run once the device comes to it.
  void note(const Exchange &exchange, Memory &progress, size_t index);
  /// Gives it to the stream, which then also says how far it is.
  Status enqueue(const Exchange &exchange, Memory &progress, size_t index,
                 StreamHandle stream);
  /// Code::Peer once a rank is lost or a collective failed: what was computed
  /// since is undefined.
  Status check();

  Status settle() override;
  void abort() override;

private:
  using Clock = std::chrono::steady_clock;

  RankCalls(CudaDevice &device, Communicator &communicator, StreamHandle stream)
      : device(device), communicator(communicator), stream(stream) {}

  Status openLibrary();
  Status join();
  Status createMarks(size_t most);
  Status begin();
  Status mark(Memory &progress, size_t value, StreamHandle stream) const;
  void watch();
  Status findFailure();

  CudaDevice &device;
  Communicator &communicator;
  StreamHandle stream;
  std::unique_ptr<GroupLibrary> library;
  std::unique_ptr<Group> group;
  Memory marks; ///< on the device: the values that progress takes

  std::mutex mutex; ///< guards what follows
  std::condition_variable changed;
  bool isEnding = false, isAborted = false;
  std::string failure;     ///< why the thread ended what was under way
  Position lastSeen = {};  ///< of this rank
  Clock::time_point since; ///< when it was seen first

  std::thread thread;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_RANKCALLS_H
