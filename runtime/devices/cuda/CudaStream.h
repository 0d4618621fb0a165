//===- CudaStream.h - Walks on a CUDA device --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_CUDASTREAM_H
#define TCC_RUNTIME_DEVICES_CUDA_CUDASTREAM_H

#include "runtime/devices/cuda/CudaDevice.h"
#include "runtime/devices/cuda/GraphCache.h"
#include "runtime/devices/cuda/LibraryCalls.h"
#include "runtime/devices/cuda/Tuner.h"

namespace tcc::runtime::cuda {

/// Launches in order. A walk that reads nothing is captured into a graph the
/// second time that it runs, and replayed from then on. Launches that may fault
/// have a slot each, {flag, value}; they are read when the walk is done.
class CudaStream final : public Stream {
public:
  static Result<std::unique_ptr<Stream>>
  create(CudaDevice &device, std::span<const format::Entry *const> entries);
  ~CudaStream() override;

  Status follow(const Walk &walk) override;
  Status walk(Walk &walk) override;
  Status launch(const KernelLaunch &launch) override;
  Status copy(void *to, const void *from, size_t bytes) override;
  Status upload(Walk &walk, void *to, const void *from, size_t bytes) override;
  Status download(void *to, const void *from, size_t bytes) override;
  Status read(void *to, const void *from, size_t bytes) override;
  Status wait() override;
  Status seal(Walk &walk) override;
  Status finish(Walk &walk) override;
  void drain() override;
  Status tune(std::vector<Measurement> *measured) override;
  uint64_t plannedBytes() const override {
    return slots.size() + passage.size() + workspace.size();
  }

private:
  /// {flag, value}, as kernels write them.
  struct Fault {
    int64_t flag, value;
  };

  /// What is under way for one walk, between its first upload and its end.
  struct Flight {
    const Walk *walk = nullptr;
    Memory staging;    ///< pinned: what is uploaded
    size_t staged = 0; ///< bytes of it, since the walk ran last
    EventHandle uploaded = nullptr, done = nullptr;
    EventHandle given = nullptr; ///< what the caller's stream had before
    bool isSealed = false;
    std::vector<const format::Launch *> faulting; ///< of each slot taken
    Memory slotValues;                            ///< pinned: as read
    bool areSlotsRead = false; ///< the copy to the host is in the stream
  };

  explicit CudaStream(CudaDevice &device)
      : device(device), driver(device.driver()), graphs(driver),
        libraryCalls(device) {}

  Status allocate(std::span<const format::Entry *const> entries);
  Status reserveMemory(uint64_t shifted, uint64_t workspaceBytes);
  Result<Flight *> flightOf(const Walk &walk);
  Status reserveStaging(Flight &flight, size_t bytes);
  Status runWalk(Walk &walk);
  Status dropPlans();
  Status capture(Walk &walk, CachedGraph &graph);
  Status replay(Walk &walk, CachedGraph &graph);
  Result<bool> launchLibrary(const KernelLaunch &launch);
  Status launchKernel(const KernelLaunch &launch);
  Status takeSlot(const format::Launch &launch, void *&slot);
  Status copyPiece(Address to, Address from, size_t bytes);
  Status readFaults();
  Status checkFaults(Flight &flight);
  Status clearFaults();

  CudaDevice &device;
  const Driver &driver;
  StreamHandle stream = nullptr;
  StreamHandle uploads = nullptr; ///< copies to the device, beside walks
  std::vector<void *> parameters;
  std::vector<std::unique_ptr<Flight>> flights;
  Flight *current = nullptr; ///< of the walk that runs, or ran last

  Memory slots; ///< on the device, zero but where a launch failed
  size_t slotCount = 0;
  bool isCapturing = false;
  bool isTooLong = false; ///< the walk takes more slots than there are

  Memory element; ///< pinned: that `read` copies through
  Memory passage; ///< on the device: for copies between places that overlap
  GraphCache graphs;

  Memory workspace; ///< of the library, if there is one
  LibraryCalls libraryCalls;
  std::unique_ptr<Tuner> tuner; ///< while it measures
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_CUDASTREAM_H
