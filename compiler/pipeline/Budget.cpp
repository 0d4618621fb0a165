#include "compiler/pipeline/Budget.h"

#include "compiler/passes/exec/memory/Placement.h"
#include "dialects/exec/Effects.h"
#include "dialects/graph/Shape.h"
#include "dialects/graph/Variables.h"
#include "runtime/base/Alignment.h"
#include "runtime/base/ByteSize.h"
#include "runtime/base/PlannedMemory.h"
#include "runtime/package/EntryKinds.h"

#include "llvm/ADT/DenseSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tcc {

std::string readBudget(const std::string &text, const std::string &reserve,
                       std::optional<Budget> &budget) {
  if (text.empty())
    return reserve.empty() ? "" : "--reserve is of a memory budget: give one";
  std::optional<int64_t> bytes = parseByteSize(text);
  if (!bytes)
    return "memory budget: expected bytes as '22GiB', found '" + text + "'";
  std::optional<int64_t> reserved =
      parseByteSize(reserve.empty() ? "0" : reserve);
  if (!reserved)
    return "--reserve: expected bytes as '1GiB', found '" + reserve + "'";
  budget = Budget{*bytes, *reserved};
  return {};
}

static int64_t getBytes(Type type) {
  constexpr int64_t kBitsPerByte = 8;
  auto tensor = cast<RankedTensorType>(type);
  int64_t bits = tensor.getElementType().getIntOrFloatBitWidth();
  return tensor.getNumElements() * llvm::divideCeil(bits, kBitsPerByte);
}

static bool isExact(Operation *module) {
  return module->hasAttr(graph::GraphDialect::kExactAttr);
}

format::EntryKind getStep(ModuleOp module) {
  return isExact(module) ? format::EntryKind::accumulate_step
                         : format::EntryKind::train_step;
}

/// In a module that was written by hand it may have any name. With exact sums a
/// process alone runs what several do.
bool isRun(exec::EntryOp entry, bool hasRanks) {
  auto kind = format::findEntryKind(entry.getSymName());
  hasRanks |= isExact(entry->getParentOp());
  return !kind || format::isRun(*kind, hasRanks);
}

bool mayHaveRanks(ModuleOp module) {
  return llvm::any_of(module.getOps<exec::EntryOp>(), [](exec::EntryOp entry) {
    auto kind = format::findEntryKind(entry.getSymName());
    return kind && format::isOfRanks(*kind);
  });
}

/// Constants that entries read which run at any time; `init` reads the model's
/// values once.
static int64_t getConstantBytes(ModuleOp module, bool hasRanks) {
  SmallVector<exec::ConstantOp> constants(module.getOps<exec::ConstantOp>());
  llvm::DenseSet<int64_t> used;
  for (exec::EntryOp entry : module.getOps<exec::EntryOp>())
    if (isRun(entry, hasRanks) &&
        entry.getSymName() != format::nameOf(format::EntryKind::init))
      entry.walk([&](exec::BufferOp buffer) {
        if (buffer.getStorage() == exec::StorageClass::constant)
          used.insert(*buffer.getIndex());
      });
  int64_t bytes = 0;
  for (int64_t index : used)
    bytes += alignTensor(getBytes(constants[index].getType()));
  return bytes;
}

// --- On a device ---

static bool isOnDevice(exec::EntryOp entry) {
  return llvm::any_of(
      entry.getBody().getOps<exec::BufferOp>(), [](exec::BufferOp buffer) {
        return buffer.getType().getSpace() == exec::MemorySpace::device;
      });
}

/// A place for each launch that may fault.
static int64_t getFaultBytes(exec::EntryOp entry) {
  int64_t bytes = 0;
  entry.walk([&](exec::LaunchOp launch) {
    bytes += launch.getFault() ? runtime::kFaultBytes : 0;
  });
  return bytes;
}

static int64_t getBound(Value value) {
  if (auto view = value.getDefiningOp<exec::ViewOp>())
    return view.getBound();
  return value.getDefiningOp<exec::BufferOp>().getBound();
}

/// Copies between places that may overlap pass through other memory, of each
/// lane.
static int64_t getPassageBytes(exec::EntryOp entry) {
  int64_t most = 0;
  auto measure = [&](auto copy) {
    if (mayOverlap(getRoot(copy.getFrom()), getRoot(copy.getTo())))
      most = std::max(
          most, std::min(getBound(copy.getFrom()), getBound(copy.getTo())));
  };
  entry.walk([&](exec::CopyOp copy) { measure(copy); });
  entry.walk([&](exec::StartCopyOp copy) { measure(copy); });
  return alignTensor(std::min(most, runtime::kPassageBytes));
}

/// As the runtime counts them: those from this one on launch nothing.
static int64_t countLaunchingLanes(exec::EntryOp entry) {
  int64_t count = 1;
  entry.walk([&](exec::LaunchOp launch) {
    count = std::max<int64_t>(count, launch.getLane() + 1);
  });
  return count;
}

// --- All ---

/// States, twice where the next values are not written over the current ones.
static int64_t getStateBytes(exec::EntryOp entry) {
  int64_t bytes = 0;
  for (auto buffer : entry.getBody().getOps<exec::BufferOp>())
    if (buffer.getStorage() == exec::StorageClass::state &&
        !(buffer.getNext() && buffer.getInPlace()))
      bytes += buffer.getBound();
  return bytes;
}

MemoryPlan getMemoryPlan(ModuleOp module, int threads, bool hasRanks) {
  MemoryPlan plan;
  plan.constants = getConstantBytes(module, hasRanks);
  for (graph::VariableAttr variable : graph::getVariables(module))
    plan.variables += graph::getRoom(variable);
  int64_t worker = 0, workspace = 0, passage = 0, lanes = 1, launching = 1;
  auto most = [](int64_t &all, int64_t own) { all = std::max(all, own); };
  for (exec::EntryOp entry : module.getOps<exec::EntryOp>()) {
    if (!isRun(entry, hasRanks))
      continue;
    most(lanes, entry.getLanes());
    most(plan.arena, entry.getScratchBytes().value_or(0));
    most(launching, countLaunchingLanes(entry));
    most(workspace,
         runtime::alignWorkspace(entry.getWorkspaceBytes().value_or(0)));
    most(worker, alignTensor(entry.getWorkerBytes().value_or(0)));
    most(plan.states, getStateBytes(entry));
    if (!isOnDevice(entry))
      continue;
    most(plan.faults, getFaultBytes(entry));
    most(passage, getPassageBytes(entry));
  }
  plan.workers = worker * (threads + launching - 1);
  plan.workspace = workspace * launching;
  plan.passage = passage * lanes;
  return plan;
}

} // namespace tcc
