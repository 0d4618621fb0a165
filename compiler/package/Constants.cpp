#include "compiler/package/Constants.h"
#include "compiler/package/EntryBuilder.h"
#include "dialects/graph/Shape.h"
#include "runtime/base/Alignment.h"
#include "runtime/package/Digest.h"
#include "runtime/package/Names.h"

#include <set>

using namespace mlir;

namespace tcc::package {

static std::span<const std::byte> asBytes(ArrayRef<char> bytes) {
  return std::as_bytes(std::span(bytes.data(), bytes.size()));
}

static exec::EntryOp findPrepare(ModuleOp module) {
  for (exec::EntryOp entry : module.getOps<exec::EntryOp>())
    if (entry.getSymName() == format::nameOf(format::EntryKind::prepare))
      return entry;
  return {};
}

// --- Model tensors ---

static ModelTensorInfo describe(StringRef name, RankedTensorType type,
                                const Weight *weight,
                                const llvm::StringMap<int32_t> &constants) {
  ModelTensorInfo info;
  info.name = name.str();
  info.type = type;
  auto stored = constants.find(name);
  if (stored != constants.end())
    info.constIndex = stored->second;
  if (weight && weight->structural && !weight->bytes.empty()) {
    info.isStructural = true;
    info.digest = runtime::digestOf(asBytes(weight->bytes));
  }
  return info;
}

std::vector<ModelTensorInfo> listModelTensors(ModuleOp module,
                                              const WeightStore &weights) {
  llvm::StringMap<int32_t> constants;
  int32_t position = 0;
  for (exec::ConstantOp op : module.getOps<exec::ConstantOp>())
    constants[op.getName()] = position++;
  std::vector<ModelTensorInfo> tensors;
  std::set<std::string> listed;
  if (exec::EntryOp prepare = findPrepare(module))
    for (auto tensor : prepare.getInputs().getAsRange<exec::TensorAttr>()) {
      StringRef name = tensor.getName();
      tensors.push_back(
          describe(name, tensor.getType(), weights.find(name), constants));
      listed.insert(name.str());
    }
  for (const Weight &weight : weights.get())
    if (listed.insert(weight.name).second)
      tensors.push_back(describe(weight.name, weight.type, &weight, constants));
  return tensors;
}

// --- Readers ---

static Value getRoot(Value buffer) {
  while (auto view = buffer.getDefiningOp<exec::ViewOp>())
    buffer = view.getBase();
  return buffer;
}

std::vector<uint64_t> countReadBytes(ModuleOp module) {
  std::vector<uint64_t> sizes;
  for (exec::ConstantOp op : module.getOps<exec::ConstantOp>())
    sizes.push_back(getByteSize(cast<RankedTensorType>(op.getType())));
  std::vector<uint64_t> counts(sizes.size());
  auto symbols = graph::getSymbols(module);
  auto count = [&](exec::CommandOpInterface command) {
    for (Value read : command.getReads()) {
      auto buffer = getRoot(read).getDefiningOp<exec::BufferOp>();
      if (!buffer || buffer.getStorage() != exec::StorageClass::constant)
        continue;
      uint64_t index = *buffer.getIndex();
      auto launch = dyn_cast<exec::LaunchOp>(command.getOperation());
      bool isOnce = launch && isa<exec::EntryOp>(launch->getParentOp());
      counts[index] +=
          isOnce && launch.getBytes()
              ? graph::getRange(launch.getBytes()->getResult(0), symbols).max
              : sizes[index];
    }
  };
  for (exec::EntryOp entry : module.getOps<exec::EntryOp>())
    if (entry.getSymName() != format::nameOf(format::EntryKind::prepare))
      entry.walk(count);
  return counts;
}

// --- Sources ---

namespace {

/// Follows the model tensors through the buffers of `prepare`.
class SourceTracker {
public:
  explicit SourceTracker(exec::EntryOp prepare) {
    // A second walk carries what loops bring back to their start.
    for (int round = 0; round < 2; ++round)
      prepare.walk([&](exec::CommandOpInterface command) { follow(command); });
  }

  const std::set<uint32_t> &getSources(Value buffer) {
    return sources[getRoot(buffer)];
  }

private:
  void follow(exec::CommandOpInterface command) {
    std::set<uint32_t> read;
    for (Value buffer : command.getReads()) {
      Value root = getRoot(buffer);
      auto op = root.getDefiningOp<exec::BufferOp>();
      if (op && op.getStorage() == exec::StorageClass::input)
        read.insert(op.getIndex().value_or(0));
      const auto &known = sources[root];
      read.insert(known.begin(), known.end());
    }
    for (Value buffer : command.getWrites())
      sources[getRoot(buffer)].insert(read.begin(), read.end());
  }

  llvm::DenseMap<Value, std::set<uint32_t>> sources;
};

} // namespace

std::vector<std::vector<uint32_t>> findSources(ModuleOp module) {
  llvm::StringMap<std::vector<uint32_t>> byName;
  if (exec::EntryOp prepare = findPrepare(module)) {
    SourceTracker tracker(prepare);
    prepare.walk([&](exec::BufferOp buffer) {
      if (buffer.getStorage() != exec::StorageClass::output)
        return;
      auto tensor =
          cast<exec::TensorAttr>(prepare.getOutputs()[*buffer.getIndex()]);
      const auto &sources = tracker.getSources(buffer.getResult());
      byName[tensor.getName()].assign(sources.begin(), sources.end());
    });
  }
  std::vector<std::vector<uint32_t>> result;
  for (exec::ConstantOp op : module.getOps<exec::ConstantOp>())
    result.push_back(byName.lookup(op.getName()));
  return result;
}

// --- Bytes ---

ConstantBytes::ConstantBytes(ModuleOp module, const WeightStore &weights,
                             bool withWeights) {
  for (exec::ConstantOp op : module.getOps<exec::ConstantOp>()) {
    Constant constant;
    constant.size = getByteSize(cast<RankedTensorType>(op.getType()));
    const Weight *weight = weights.find(op.getName());
    if (auto value = op.getValueAttr()) {
      std::vector<char> bytes = getBytes(cast<ElementsAttr>(value));
      auto view = std::as_bytes(std::span(bytes));
      constant.owned.assign(view.begin(), view.end());
    } else if (!withWeights) {
      constant.isLeftOut = true;
    } else if (weight) {
      constant.bytes = asBytes(weight->bytes);
    } else {
      constant.isPrepared = true;
    }
    constants.push_back(std::move(constant));
  }
}

std::vector<void *> ConstantBytes::getPointers() {
  std::vector<void *> pointers;
  for (Constant &constant : constants) {
    if (constant.isPrepared)
      constant.owned.resize(constant.size);
    pointers.push_back(const_cast<std::byte *>(constant.get().data()));
  }
  return pointers;
}

std::vector<ConstPlace> ConstantBytes::getPlaces() const {
  std::vector<ConstPlace> places;
  uint64_t end = 0;
  for (const Constant &constant : constants) {
    ConstPlace &place = places.emplace_back();
    place.bytes = constant.size;
    if (constant.isLeftOut)
      continue;
    place.offset = alignTensor(end);
    end = place.offset + place.bytes;
  }
  return places;
}

std::vector<runtime::WeightData>
ConstantBytes::layOut(std::vector<ConstPlace> &places) const {
  std::vector<runtime::WeightData> tensors;
  for (auto [constant, place] : llvm::zip_equal(constants, places)) {
    if (constant.isLeftOut)
      continue;
    place.digest = runtime::digestOf(constant.get());
    tensors.push_back(
        {place.offset, constant.get(), *place.digest, place.isSparse});
  }
  return tensors;
}

} // namespace tcc::package
