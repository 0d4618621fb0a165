//===- CudaStream.h - Walks on a CUDA device --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_CUDASTREAM_H
#define TCC_RUNTIME_DEVICES_CUDA_CUDASTREAM_H

#include "runtime/devices/cuda/CudaDevice.h"
#include "runtime/devices/cuda/GraphCache.h"
#include "runtime/devices/cuda/LaneStreams.h"
#include "runtime/devices/cuda/LibraryCalls.h"
#include "runtime/devices/cuda/RankCalls.h"
#include "runtime/devices/cuda/Tuner.h"

namespace tcc::runtime::cuda {

/// Each lane is a stream of the driver. A run that reads nothing is captured
/// into a graph the second time that it is given, and replayed from then on.
/// Launches that may fault have a slot each, {flag, value}; they are read when
/// the run is done.
class CudaStream final : public Stream {
public:
  static Result<std::unique_ptr<Stream>>
  create(CudaDevice &device, std::span<const EntryPlan> entries,
         Communicator *communicator);
  ~CudaStream() override;

  Status follow(const Run &run) override;
  Result<bool> begin(Run &run) override;
  Status dispatch(const Dispatch &dispatch) override;
  Status transfer(const Transfer &transfer) override;
  Status exchange(const Exchange &exchange) override;
  Status record(const Mark &mark) override;
  Status await(const Mark &mark) override;
  Status copy(void *to, const void *from, size_t bytes) override;
  Status end(Run &run, Status given) override;
  Status upload(Run &run, void *to, const void *from, size_t bytes) override;
  Status download(void *to, const void *from, size_t bytes) override;
  Status read(void *to, const void *from, size_t bytes) override;
  Status wait() override;
  Status seal(Run &run) override;
  Status finish(Run &run) override;
  void drain() override;
  Status tune(std::vector<Measurement> *measured) override;
  size_t laneCount() const override { return lanes.size(); }
  void addPlanned(PlannedMemory &planned) const override {
    planned.faults += slots.size();
    planned.passage += passage.size();
    planned.workspace += workspace.size();
  }

private:
  Status setTrace(Trace *trace) override;

  /// {flag, value}, as kernels write them.
  struct FaultSlot {
    int64_t flag, value;
  };
  static_assert(sizeof(FaultSlot) == kFaultBytes);

  /// What is under way for one run, between its first upload and its end.
  struct Flight {
    const Run *run = nullptr;
    Memory staging;    ///< pinned: what is uploaded
    size_t staged = 0; ///< bytes of it, since the run was begun last
    EventHandle uploaded = nullptr, done = nullptr;
    EventHandle given = nullptr; ///< what the caller's stream had before
    bool isSealed = false;
    std::vector<uint32_t> faulting; ///< the command of each slot taken
    Memory slotValues;              ///< pinned: as read
    bool areSlotsRead = false;      ///< the copy to the host is in the stream
    std::optional<Fault> fault;
    /// A DeviceProgress of a run by several ranks, pinned.
    Memory progress;
    std::vector<Exchange> exchanges;    ///< given so far
    std::unique_ptr<Timeline> timeline; ///< of runs that are not replayed
    const Timeline *traced = nullptr;   ///< of the run that is under way
    int64_t start = 0;                  ///< of it, by the host's clock
    /// Around its uploads, while runs are traced. The events are timed.
    struct {
      EventHandle begin = nullptr, end = nullptr;
      size_t bytes = 0; ///< between them; 0: they are not recorded
    } timedUpload;
  };

  explicit CudaStream(CudaDevice &device)
      : device(device), driver(device.driver()), lanes(driver), graphs(driver) {
  }

  Status allocate(std::span<const EntryPlan> entries);
  Status createLanes(std::span<const EntryPlan> entries);
  Status reserveMemory(uint64_t shifted, uint64_t workspaceBytes);
  Result<Flight *> flightOf(const Run &run);
  Status reserveStaging(Flight &flight, size_t bytes);
  Status awaitUploads();
  Status chooseGraph(Run &run);
  Status dropGraphs();
  Status dropPlans();
  Status endCapture(Run &run, Status given);
  Status replay(Run &run);
  Timeline *chooseTimeline();
  Status reportTimeline(Flight &flight);
  Error markUpload(EventHandle &event);
  Error reportUpload(Flight &flight, const Timeline &timeline, int64_t start);
  Status forkLane(uint32_t lane);
  Status joinLanes();
  Status openRanks(Communicator &communicator,
                   std::span<const EntryPlan> entries);
  Status beginExchanges();
  void noteExchanges();
  Status checkRanks() { return ranks ? ranks->check() : Status(); }
  Result<bool> launchLibrary(const Dispatch &dispatch);
  Status launchKernel(const Dispatch &dispatch);
  Status takeSlot(uint32_t command, void *&slot);
  Status copyOn(uint32_t lane, void *to, const void *from, size_t bytes);
  Status readFaults();
  Status checkFaults(Flight &flight);
  Status clearFaults();

  CudaDevice &device;
  const Driver &driver;
  StreamHandle stream = nullptr;  ///< of lane 0
  StreamHandle uploads = nullptr; ///< copies to the device, beside runs
  std::vector<void *> parameters;
  std::vector<std::unique_ptr<Flight>> flights;
  Flight *current = nullptr;        ///< of the run that was begun last
  Run *given = nullptr;             ///< between its begin and its end
  std::optional<Activation> active; ///< meanwhile
  CachedGraph *graph = nullptr;     ///< of that run, if it may be replayed

  Memory slots; ///< on the device, zero but where a launch failed
  size_t slotCount = 0;
  bool isCapturing = false;
  bool isTooLong = false; ///< the run takes more slots than there are

  LaneStreams lanes; ///< the first one is `stream`

  Memory element; ///< pinned: that `read` copies through
  Memory passage; ///< on the device: for copies between places that overlap
  size_t passageBytes = 0; ///< of each lane
  GraphCache graphs;

  Memory workspace;          ///< of the library, also where there is none
  size_t workspaceBytes = 0; ///< of each lane that launches
  std::vector<std::unique_ptr<LibraryCalls>> libraryCalls; ///< of these lanes
  std::unique_ptr<Tuner> tuner;     ///< while it measures
  std::unique_ptr<RankCalls> ranks; ///< null for one rank
  // By the host's clock: of traced runs, and of their uploads.
  int64_t lastEnd = 0, lastUploadEnd = 0;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_CUDASTREAM_H
