// Plans convolutions for cuDNN: one operation graph each, so that what comes
// behind the sums is done before they are rounded.

#include "runtime/devices/libraries/CudnnLibrary.h"

#include "runtime/devices/libraries/ConvolutionGraph.h"
#include "runtime/package/LibraryRules.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static Status toStatus(const Cudnn &table, DnnError error,
                       std::string_view doing) {
  if (error == kDnnSuccess)
    return Status();
  return makeError(Code::Device, doing, ": ", table.getErrorString(error),
                   " (cuDNN status ", error, ")");
}

/// The library has nothing for it; other errors are failures.
static bool isRefusal(DnnError error) {
  DnnError category = error / 1000 * 1000;
  return category == kDnnBadParameter || category == kDnnNotSupported;
}

//===----------------------------------------------------------------------===//
// Plans
//===----------------------------------------------------------------------===//

namespace {

class CudnnPlan final : public LibraryPlan {
public:
  CudnnPlan(const Cudnn &table, DnnDevice device, const LibraryWork &work,
            void *workspace)
      : table(table), device(device), work(work), workspace(workspace),
        graph(table, this->work, device.handle) {}

  /// False if the library has no way for it from `first` on.
  Result<bool> choose(size_t bytes, size_t first);
  size_t way() const override { return chosenWay; }
  Status enqueue(const LibraryOperands &operands, StreamHandle stream) override;

private:
  std::vector<Descriptor> suggest(DnnHeuristic mode) const;
  bool isExact(const Descriptor &config) const;
  bool tryConfig(const Descriptor &config, size_t bytes);
  DnnError pack(const LibraryOperands &operands);

  const Cudnn &table;
  DnnDevice device;
  LibraryWork work;
  void *workspace;
  ConvolutionGraph graph;
  std::optional<Descriptor> config, plan;
  size_t chosenWay = 0;
  /// Holds the last operands: a descriptor cannot be changed once it is final.
  std::optional<Descriptor> variantPack;
  LibraryOperands packed = {};
};

} // namespace

/// Ways to compute the graph, the one that is thought fastest first.
std::vector<Descriptor> CudnnPlan::suggest(DnnHeuristic mode) const {
  Descriptor heuristics(table, kDnnHeuristics);
  heuristics.set(kDnnHeuristicGraph, kDnnTypeDescriptor, graph.get());
  heuristics.set(kDnnHeuristicMode, kDnnTypeHeuristic, mode);
  if (!device.handle)
    heuristics.set(kDnnHeuristicDevice, kDnnTypeDescriptor, device.properties);
  int64_t count = 0;
  if (heuristics.finalize() ||
      heuristics.read(kDnnHeuristicResults, kDnnTypeDescriptor, 0, count,
                      nullptr))
    return {};
  std::vector<Descriptor> configs;
  std::vector<DnnDescriptor> handles;
  for (int64_t i = 0; i < count; ++i)
    handles.push_back(configs.emplace_back(table, kDnnConfig).get());
  // Fewer may come than were announced.
  int64_t room = count;
  if (heuristics.read(kDnnHeuristicResults, kDnnTypeDescriptor, room, count,
                      handles.data()))
    return {};
  configs.erase(configs.begin() + std::min(room, count), configs.end());
  return configs;
}

/// Whether its engine adds in f32, and each time in the same order.
bool CudnnPlan::isExact(const Descriptor &config) const {
  Descriptor engine(table, kDnnEngine);
  DnnDescriptor handle = engine.get();
  int64_t count = 0;
  if (config.read(kDnnConfigEngine, kDnnTypeDescriptor, 1, count, &handle))
    return false;
  std::vector<int> notes(64); // more than there are
  if (engine.read(kDnnEngineNotes, kDnnTypeNote, int64_t(notes.size()), count,
                  notes.data()) ||
      count > int64_t(notes.size()))
    return false;
  return std::all_of(notes.begin(), notes.begin() + count, [](int note) {
    return note == kDnnTensorCore || note == kDnnStrictNan;
  });
}

bool CudnnPlan::tryConfig(const Descriptor &config, size_t bytes) {
  if (!isExact(config))
    return false;
  Descriptor candidate(table, kDnnPlan);
  if (device.handle)
    candidate.set(kDnnPlanHandle, kDnnTypeHandle, device.handle);
  else
    candidate.set(kDnnPlanDevice, kDnnTypeDescriptor, device.properties);
  candidate.set(kDnnPlanConfig, kDnnTypeDescriptor, config.get());
  int64_t needed = 0, count = 0;
  if (candidate.finalize() ||
      candidate.read(kDnnPlanWorkspace, kDnnTypeInt64, 1, count, &needed) ||
      static_cast<uint64_t>(needed) > bytes)
    return false;
  plan = std::move(candidate);
  return true;
}

Result<bool> CudnnPlan::choose(size_t bytes, size_t first) {
  if (isRefusal(graph.error()))
    return false;
  if (Status status =
          toStatus(table, graph.error(), "describing a convolution to cuDNN");
      !status.ok())
    return status;
  size_t way = 0;
  for (DnnHeuristic mode : {kDnnModeA, kDnnFallback})
    for (Descriptor &candidate : suggest(mode)) {
      if (way >= first && tryConfig(candidate, bytes)) {
        config = std::move(candidate);
        chosenWay = way;
        return true;
      }
      if (++way == kMaxWays)
        return false;
    }
  return false;
}

DnnError CudnnPlan::pack(const LibraryOperands &operands) {
  if (variantPack && operands == packed)
    return kDnnSuccess;
  std::vector<int64_t> ids{kTensorLhs, kTensorRhs, kTensorResult};
  std::vector<const void *> places{operands.lhs, operands.rhs, operands.result};
  for (size_t i = 0; i < operands.steps.size(); ++i) {
    if (!operands.steps[i])
      continue;
    ids.push_back(kTensorStep + int64_t(i));
    places.push_back(operands.steps[i]);
  }
  variantPack.emplace(table, kDnnVariantPack);
  variantPack->set(kDnnPackIds, ids);
  variantPack->set(kDnnPackPointers, kDnnTypePointer, places.data(),
                   places.size());
  variantPack->set(kDnnPackWorkspace, kDnnTypePointer, workspace);
  packed = operands;
  DnnError error = variantPack->finalize();
  if (error)
    variantPack.reset();
  return error;
}

Status CudnnPlan::enqueue(const LibraryOperands &operands,
                          StreamHandle stream) {
  DnnError error = pack(operands);
  if (error == kDnnSuccess)
    error = table.setStream(device.handle, stream);
  if (error == kDnnSuccess)
    error = table.execute(device.handle, plan->get(), variantPack->get());
  return toStatus(table, error, "convolving");
}

//===----------------------------------------------------------------------===//
// The library
//===----------------------------------------------------------------------===//

Result<std::unique_ptr<CudnnLibrary>> CudnnLibrary::open(const Cudnn &table) {
  std::unique_ptr<CudnnLibrary> library(new CudnnLibrary(table));
  if (Status status =
          toStatus(table, table.create(&library->handle), "starting cuDNN");
      !status.ok())
    return status;
  return library;
}

Result<std::unique_ptr<CudnnLibrary>>
CudnnLibrary::openWithout(const Cudnn &table, std::string_view properties) {
  std::unique_ptr<CudnnLibrary> library(new CudnnLibrary(table));
  Descriptor &device = library->properties.emplace(table, kDnnDeviceProperties);
  device.set(kDnnDeviceJson, kDnnTypeChar, properties.data(),
             properties.size());
  if (Status status =
          toStatus(table, device.finalize(), "describing a device to cuDNN");
      !status.ok())
    return status;
  return library;
}

CudnnLibrary::~CudnnLibrary() {
  if (handle)
    table.destroy(handle);
}

Result<std::unique_ptr<LibraryPlan>> CudnnLibrary::plan(const LibraryWork &work,
                                                        void *workspace,
                                                        size_t bytes,
                                                        size_t first) const {
  if (!isOfLibrary(work))
    return std::unique_ptr<LibraryPlan>();
  DnnDevice device{handle, properties ? properties->get() : nullptr};
  auto plan = std::make_unique<CudnnPlan>(table, device, work, workspace);
  Result<bool> isThere = plan->choose(bytes, first);
  if (!isThere.ok())
    return isThere.takeStatus();
  return *isThere ? std::unique_ptr<LibraryPlan>(std::move(plan)) : nullptr;
}
