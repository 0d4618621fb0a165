//===- UpdateVariables.cpp - New values where the variables lie -----------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/InPlace.h"
#include "compiler/passes/exec/memory/Liveness.h"
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

/// The last command but `store` that uses the variable, or null.
static Operation *getLastUse(Update update) {
  Block *block = update.store->getBlock();
  Operation *last = nullptr;
  for (Operation *command : getCommands(update.variable)) {
    Operation *own = block->findAncestorOpInBlock(*command);
    if (own != update.store && (!last || last->isBeforeInBlock(own)))
      last = own;
  }
  return last;
}

/// True if what computes the value may write the variable itself. For a launch
/// that reads it this is noted.
static bool canWriteVariable(Update update, const SymbolTable &kernels) {
  if (update.value.getBytes() != update.variable.getBytes())
    return false;
  Operation *producer = getUses(update.value, update.store->getBlock()).first;
  Operation *lastUse = getLastUse(update);
  if (!lastUse || lastUse->isBeforeInBlock(producer))
    return true;
  auto launch = dyn_cast<LaunchOp>(producer);
  return launch && lastUse == producer &&
         !llvm::is_contained(launch.getOutputs(),
                             update.variable.getResult()) &&
         tryInPlace(launch, getComputation(launch, kernels), update.value,
                    update.variable);
}

static void updateEntry(EntryOp entry, const SymbolTable &kernels,
                        DecisionLog &log) {
  auto variables = graph::getVariables(entry->getParentOfType<ModuleOp>());
  for (Update update : collectUpdates(entry)) {
    StringRef name = variables[*update.variable.getIndex()].getName();
    double bytes = update.variable.getBound();
    if (!canWriteVariable(update, kernels)) {
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
