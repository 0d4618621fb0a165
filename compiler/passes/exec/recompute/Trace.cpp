#include "compiler/passes/exec/recompute/Trace.h"

#include "compiler/passes/exec/memory/InPlace.h"
#include "compiler/passes/exec/memory/LiveRanges.h"
#include "compiler/passes/exec/memory/Schedule.h"
#include "compiler/passes/exec/recompute/Units.h"

#include <set>

using namespace mlir;

namespace tcc::exec {

/// The most bytes that blocks nested in `op` need at once.
static int64_t getInnerBytes(Operation *op) {
  int64_t bytes = 0;
  for (Region &region : op->getRegions()) {
    BlockGraph graph(region.front());
    for (unsigned i = 0; i < graph.size(); ++i)
      graph.setInnerBytes(i, getInnerBytes(graph.getCommand(i)));
    bytes = std::max(bytes, graph.getPeak(graph.getProgramOrder()));
  }
  return bytes;
}

void Trace::collectCommands() {
  SymbolTable kernels(entry->getParentOfType<ModuleOp>());
  for (Operation &op : entry.getBody().front()) {
    if (!isa<CommandOpInterface>(op))
      continue;
    ids[&op] = commands.size();
    TracedCommand &command = commands.emplace_back();
    command.op = &op;
    if (auto launch = dyn_cast<LaunchOp>(op))
      command.kernel = kernels.lookup<KernelOp>(launch.getKernel());
    command.innerBytes = getInnerBytes(&op);
  }
}

/// The launch of this block that alone writes `buffer` and does not read it.
static LaunchOp getWriter(BufferOp buffer) {
  LaunchOp writer;
  for (Operation *user : buffer->getUsers()) {
    if (isa<ViewOp, TokenOpInterface>(user))
      return {};
    auto command = cast<CommandOpInterface>(user);
    if (!llvm::is_contained(command.getWrites(), buffer.getResult()))
      continue;
    auto launch = dyn_cast<LaunchOp>(user);
    if (writer || !launch || launch->getBlock() != buffer->getBlock() ||
        llvm::count(launch->getOperands(), buffer.getResult()) != 1)
      return {};
    writer = launch;
  }
  return writer;
}

void Trace::findGap(TracedValue &value) const {
  for (auto [use, next] : llvm::zip(value.uses, llvm::drop_begin(value.uses)))
    if (next - use > value.gapEnd - value.gapBegin) {
      value.gapBegin = use;
      value.gapEnd = next;
    }
}

void Trace::addValue(BufferOp buffer) {
  ValueId id = values.size();
  TracedValue &value = values.emplace_back();
  value.buffer = buffer;
  value.bytes = getArenaBytes(buffer);
  std::set<CommandId> uses;
  for (Operation *command : getUses(buffer))
    uses.insert(ids.lookup(command));
  value.uses.assign(uses.begin(), uses.end());
  LaunchOp writer = getWriter(buffer);
  if (writer && ids.lookup(writer) == value.uses.front()) {
    value.writer = value.uses.front();
    value.result = llvm::find(writer.getOutputs(), buffer.getResult()) -
                   writer.getOutputs().begin();
    findGap(value);
  }
  for (CommandId use : value.uses)
    (use == value.writer ? commands[use].writes : commands[use].reads)
        .push_back(id);
}

void Trace::collectValues() {
  for (auto buffer : entry.getBody().getOps<BufferOp>())
    if (buffer.getStorage() == StorageClass::scratch && !buffer->use_empty())
      addValue(buffer);
}

/// What ShareBuffers may do, if the input's last reader is this launch.
void Trace::collectPairs(CommandId id) {
  TracedCommand &command = commands[id];
  auto launch = dyn_cast<LaunchOp>(command.op);
  if (!launch)
    return;
  for (ValueId result : command.writes)
    for (ValueId input : command.reads) {
      auto inputs = launch.getInputs();
      auto position = llvm::find(inputs, values[input].buffer.getResult());
      if (position != inputs.end() &&
          canLieOver(launch, command.getComputation(), values[result].result,
                     position - inputs.begin()))
        command.inPlace.push_back({result, input});
    }
}

Trace::Trace(EntryOp entry, fusion::CostModels &models) : entry(entry) {
  collectCommands();
  collectValues();
  for (CommandId i = 0; i < commands.size(); ++i) {
    collectPairs(i);
    auto launch = dyn_cast<LaunchOp>(commands[i].op);
    commands[i].isMovable =
        launch && commands[i].writes.size() == launch.getOutputs().size();
  }
  findUnits(*this, models);
}

} // namespace tcc::exec
