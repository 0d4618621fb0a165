#include "runtime/devices/emulated/SimulatedCudnn.h"

#include "runtime/devices/emulated/DriverCalls.h"
#include "runtime/devices/emulated/GraphReader.h"

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

struct tcc::runtime::cuda::DnnHandleObject {
  Stream *stream = nullptr;
};

namespace {

/// What the library can compute a graph with. A caller that wants the same bits
/// each time, and f32 sums, has the last one.
struct Engine {
  std::vector<int> notes;
  int64_t workspace;
  bool isBuildable;
};
constexpr int kReducedPrecision = 2, kNondeterministic = 4;
constexpr int64_t kWorkspace = 1024;
const Engine kEngines[] = {
    {{kDnnTensorCore, kNondeterministic}, 0, true},
    {{kDnnTensorCore, kReducedPrecision}, 0, true},
    {{kDnnTensorCore}, int64_t(1) << 40, true},
    {{kDnnTensorCore}, 0, false},
    {{kDnnTensorCore, kDnnStrictNan}, kWorkspace, true},
};
constexpr size_t kEngineCount = std::size(kEngines);
constexpr size_t kExactEngine = kEngineCount - 1;

size_t widthOf(int type) {
  switch (type) {
  case kDnnTypeBoolean:
  case kDnnTypeChar:
    return 1;
  case kDnnTypeInt64:
  case kDnnTypePointer:
  case kDnnTypeDescriptor:
  case kDnnTypeHandle:
    return 8;
  default:
    return 4;
  }
}

} // namespace

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

static DnnError finalizeGraph(Description &description) {
  GraphReader reader;
  TensorGraph graph = reader.graph(description);
  if (!reader.ok() || !checkGraph(graph).ok())
    return kDnnBadParameter;
  description.graph = std::make_shared<const TensorGraph>(std::move(graph));
  return kDnnSuccess;
}

static DnnError finalizePlan(Description &description) {
  GraphReader reader;
  reader.one<DnnHandle>(description, kDnnPlanHandle, kDnnTypeHandle);
  Description *config = find(reader.one<DnnDescriptor>(
      description, kDnnPlanConfig, kDnnTypeDescriptor));
  if (!reader.ok() || !config || !config->graph)
    return kDnnBadParameter;
  description.graph = config->graph;
  description.engine = config->engine;
  return kEngines[config->engine].isBuildable ? kDnnSuccess : kDnnNotSupported;
}

static DnnError finalizeKind(Description &description) {
  GraphReader reader;
  switch (description.kind) {
  case kDnnTensor:
    reader.tensor(description);
    return reader.ok() ? kDnnSuccess : kDnnBadParameter;
  case kDnnGraph:
    return finalizeGraph(description);
  case kDnnHeuristics:
    description.graph =
        reader.part(description, kDnnHeuristicGraph, kDnnGraph).graph;
    return description.graph ? kDnnSuccess : kDnnBadParameter;
  case kDnnPlan:
    return finalizePlan(description);
  default:
    return kDnnSuccess;
  }
}

/// Mode A has nothing exact for windows of three axes.
static std::vector<size_t> proposeEngines(const Description &heuristics) {
  GraphReader reader;
  int mode = reader.one<int>(heuristics, kDnnHeuristicMode, kDnnTypeHeuristic);
  if (mode == kDnnFallback)
    return {kExactEngine};
  size_t axes = heuristics.graph->tensors.begin()->second.extents.size();
  if (axes == 5)
    return {0, 1};
  std::vector<size_t> engines(kEngineCount);
  for (size_t i = 0; i < kEngineCount; ++i)
    engines[i] = i;
  return engines;
}

/// Announces one more than there are.
static DnnError readConfigs(const Description &heuristics, int64_t room,
                            int64_t &count, void *values) {
  std::vector<size_t> engines = proposeEngines(heuristics);
  count = static_cast<int64_t>(engines.size()) + 1;
  if (room == 0)
    return kDnnSuccess;
  count = std::min(room, count - 1);
  for (int64_t i = 0; i < count; ++i) {
    Description *config = find(static_cast<DnnDescriptor *>(values)[i]);
    if (!config || config->kind != kDnnConfig)
      return kDnnBadParameter;
    config->graph = heuristics.graph;
    config->engine = engines[i];
  }
  return kDnnSuccess;
}

static DnnError readAttribute(const Description &description, int attribute,
                              int64_t room, int64_t &count, void *values) {
  const Engine &engine = kEngines[description.engine];
  if (attribute == kDnnHeuristicResults)
    return readConfigs(description, room, count, values);
  if (attribute == kDnnConfigEngine) {
    Description *part = find(*static_cast<DnnDescriptor *>(values));
    if (!part || part->kind != kDnnEngine)
      return kDnnBadParameter;
    part->engine = description.engine;
    count = 1;
    return kDnnSuccess;
  }
  if (attribute == kDnnEngineNotes) {
    count = static_cast<int64_t>(engine.notes.size());
    std::memcpy(values, engine.notes.data(),
                std::min(room, count) * sizeof(int));
    return kDnnSuccess;
  }
  if (attribute != kDnnPlanWorkspace || !description.isFinal)
    return kDnnBadParameter;
  count = 1;
  std::memcpy(values, &engine.workspace, sizeof(engine.workspace));
  return kDnnSuccess;
}

namespace {

/// Calls `body` with the description, if there is one.
template <typename Body> DnnError with(DnnDescriptor handle, Body body) {
  std::lock_guard lock(getState().mutex);
  Description *description = find(handle);
  return description ? body(*description) : kDnnBadParameter;
}

DnnError createDescriptor(int kind, DnnDescriptor *descriptor) {
  std::lock_guard lock(getState().mutex);
  auto *description = new Description(kind);
  descriptions().insert(description);
  *descriptor = toHandle<DnnDescriptor>(description);
  return kDnnSuccess;
}

DnnError destroyDescriptor(DnnDescriptor handle) {
  return with(handle, [](Description &description) {
    descriptions().erase(&description);
    delete &description;
    return kDnnSuccess;
  });
}

DnnError setAttribute(DnnDescriptor handle, int attribute, int type,
                      int64_t count, const void *values) {
  return with(handle, [&](Description &description) {
    if (description.isFinal)
      return kDnnBadParameter;
    const char *from = static_cast<const char *>(values);
    description.attributes[attribute] = {
        type, std::vector<char>(from, from + count * widthOf(type))};
    return kDnnSuccess;
  });
}

DnnError getAttribute(DnnDescriptor handle, int attribute, int, int64_t room,
                      int64_t *count, void *values) {
  return with(handle, [&](Description &description) {
    return readAttribute(description, attribute, room, *count, values);
  });
}

DnnError finalize(DnnDescriptor handle) {
  return with(handle, [](Description &description) {
    DnnError error = finalizeKind(description);
    description.isFinal = error == kDnnSuccess;
    return error;
  });
}

} // namespace

//===----------------------------------------------------------------------===//
// Execution
//===----------------------------------------------------------------------===//

static Status checkPlaces(const TensorGraph &graph,
                          const std::map<int64_t, void *> &places) {
  for (const auto &[id, tensor] : graph.tensors) {
    if (tensor.isVirtual)
      continue;
    auto place = places.find(id);
    if (place == places.end())
      return makeError(Code::Device, "tensor ", id, " has no place");
    auto address = reinterpret_cast<uint64_t>(place->second);
    if (address % tensor.alignment != 0)
      return makeError(Code::Device, "tensor ", id,
                       " is less aligned than its descriptor says");
    Status status = simulator().memory.checkDevice(address, extentOf(tensor));
    if (!status.ok())
      return status;
  }
  return Status();
}

static Status enqueue(Stream *stream, const Description *plan,
                      const Description *pack) {
  if (!stream || !plan || !plan->isFinal || !pack || !pack->isFinal)
    return Status(Code::Device, "a convolution without a plan");
  if (plan->engine != kExactEngine)
    return Status(Code::Device, "a plan with an engine that is not exact");
  GraphReader reader;
  auto ids = reader.all<int64_t>(*pack, kDnnPackIds, kDnnTypeInt64);
  auto pointers = reader.all<void *>(*pack, kDnnPackPointers, kDnnTypePointer);
  auto workspace =
      reader.one<uint64_t>(*pack, kDnnPackWorkspace, kDnnTypePointer);
  if (!reader.ok() || ids.size() != pointers.size())
    return Status(Code::Device, "a variant pack that is incomplete");
  std::map<int64_t, void *> places;
  for (size_t i = 0; i < ids.size(); ++i)
    places[ids[i]] = pointers[i];
  Operation operation{Operation::Call};
  operation.name = "convolution";
  operation.microseconds = kFirstWayMicroseconds;
  operation.call = [graph = plan->graph, places, workspace](double &) {
    Status status = checkPlaces(*graph, places);
    if (status.ok())
      status = simulator().memory.checkDevice(workspace, kWorkspace);
    if (status.ok())
      compute(*graph, places);
    return status;
  };
  return simulator().enqueue(*stream, std::move(operation));
}

const Cudnn *tcc_emulated_cudnn() {
  static const Cudnn table = {
      .create = [](DnnHandle *handle) -> DnnError {
        *handle = new DnnHandleObject;
        return kDnnSuccess;
      },
      .destroy = [](DnnHandle handle) -> DnnError {
        delete handle;
        return kDnnSuccess;
      },
      .setStream = [](DnnHandle handle, StreamHandle stream) -> DnnError {
        handle->stream = &as<Stream>(stream);
        return kDnnSuccess;
      },
      .getVersion = []() -> size_t { return 0; },
      .getErrorString =
          [](DnnError) {
            const std::string &failure = getState().failure;
            return failure.empty() ? "an error" : failure.c_str();
          },
      .createDescriptor = createDescriptor,
      .destroyDescriptor = destroyDescriptor,
      .setAttribute = setAttribute,
      .getAttribute = getAttribute,
      .finalize = finalize,
      .execute = [](DnnHandle handle, DnnDescriptor plan,
                    DnnDescriptor pack) -> DnnError {
        return call(
            [&] { return enqueue(handle->stream, find(plan), find(pack)); });
      },
  };
  return &table;
}
