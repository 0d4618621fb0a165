//===- UpdateVariables.cpp - New values where the variables lie -----------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/InPlace.h"
#include "compiler/passes/exec/memory/LiveRanges.h"
#include "dialects/graph/Variables.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_UPDATEVARIABLESPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct UpdateVariablesPass
    : impl::UpdateVariablesPassBase<UpdateVariablesPass> {
  void runOnOperation() override;
};

/// A copy that ends the update of a variable.
struct Update {
  CopyOp store;
  BufferOp value, variable;
};

} // namespace

static std::vector<Update> collectUpdates(EntryOp entry) {
  std::vector<Update> updates;
  for (auto store : entry.getBody().getOps<CopyOp>()) {
    auto value = store.getFrom().getDefiningOp<BufferOp>();
    auto variable = store.getTo().getDefiningOp<BufferOp>();
    if (value && variable && value.getStorage() == StorageClass::scratch &&
        variable.getStorage() == StorageClass::variable)
      updates.push_back({store, value, variable});
  }
  return updates;
}

/// True if what computes the value may write the variable itself: where all
/// else that uses the variable has been. For a launch that reads it this is
/// noted.
static bool canWriteVariable(Update update, const LiveRanges &live,
                             const SymbolTable &kernels) {
  if (update.value.getBytes() != update.variable.getBytes())
    return false;
  Commands others = getUses(update.variable), uses = getUses(update.value);
  others.remove(update.store);
  if (live.precede(others, uses))
    return true;
  for (Operation *use : others) {
    auto launch = dyn_cast<LaunchOp>(use);
    if (!launch || !live.isFirstUse(update.value, launch))
      continue;
    Commands self;
    self.insert(launch);
    others.remove(launch);
    return live.precede(others, self) &&
           !llvm::is_contained(launch.getOutputs(),
                               update.variable.getResult()) &&
           tryInPlace(launch, getComputation(launch, kernels), update.value,
                      update.variable);
  }
  return false;
}

static void updateEntry(EntryOp entry, const SymbolTable &kernels,
                        DecisionLog &log) {
  auto variables = graph::getVariables(entry->getParentOfType<ModuleOp>());
  LiveRanges live(entry);
  for (Update update : collectUpdates(entry)) {
    StringRef name = variables[*update.variable.getIndex()].getName();
    double bytes = update.variable.getBound();
    if (!canWriteVariable(update, live, kernels)) {
      log.add(entry, "copied",
              ("the old value of " + name + " is read later").str(),
              {{"bytes", bytes}});
      continue;
    }
    log.add(entry, "in place", ("the new value of " + name).str(),
            {{"bytes", bytes}});
    update.store.erase();
    update.variable->moveBefore(&entry.getBody().front().front());
    update.value.replaceAllUsesWith(update.variable.getResult());
    update.value.erase();
  }
}

void UpdateVariablesPass::runOnOperation() {
  DecisionLog log(getOperation(), "update-variables");
  SymbolTable kernels(getOperation());
  for (auto entry : getOperation().getOps<EntryOp>())
    updateEntry(entry, kernels, log);
}

} // namespace tcc
