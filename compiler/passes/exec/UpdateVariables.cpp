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

/// A copy of a new value to where a variable lies.
struct Update {
  CopyOp store;
  BufferOp value;
  /// A buffer, a variable's place in that of a bucket, or a rank's part of it.
  Value variable;
};

} // namespace

static std::vector<Update> collectUpdates(EntryOp entry) {
  std::vector<Update> updates;
  for (auto store : entry.getBody().getOps<CopyOp>()) {
    auto value = store.getFrom().getDefiningOp<BufferOp>();
    if (value && value.getStorage() == StorageClass::scratch &&
        getRoot(store.getTo()).getStorage() == StorageClass::variable)
      updates.push_back({store, value, store.getTo()});
  }
  return updates;
}

/// Whether the view is at a place that is known: a variable's in its bucket.
/// That of a rank's own part is not.
static bool isMember(ViewOp view) {
  return isa<AffineConstantExpr>(view.getOffset().getResult(0));
}

/// The commands that use the variable. The variables of a bucket lie side by
/// side; a rank's part of it may have elements of any.
static Commands getVariableUses(Value variable) {
  if (auto buffer = variable.getDefiningOp<BufferOp>())
    return getUses(buffer);
  auto part = variable.getDefiningOp<ViewOp>();
  Block &block = *part->getBlock();
  Commands uses;
  auto add = [&](Operation *command) {
    uses.insert(block.findAncestorOpInBlock(*command));
  };
  llvm::for_each(getCommands(variable), add);
  for (Operation *user : part.getBase().getUsers()) {
    if (auto view = dyn_cast<ViewOp>(user)) {
      if (!isMember(view) || !isMember(part))
        llvm::for_each(getCommands(view), add);
      continue;
    }
    add(user);
    if (auto start = dyn_cast<TokenOpInterface>(user))
      llvm::for_each(start.getToken().getUsers(), add);
  }
  return uses;
}

static AffineMap getBytes(Value variable) {
  if (auto part = variable.getDefiningOp<ViewOp>())
    return part.getBytes();
  return variable.getDefiningOp<BufferOp>().getBytes();
}

static StringRef getName(Value variable,
                         ArrayRef<graph::VariableAttr> variables) {
  size_t index = *getRoot(variable).getIndex();
  if (auto part = variable.getDefiningOp<ViewOp>(); part && isMember(part)) {
    auto offset = cast<AffineConstantExpr>(part.getOffset().getResult(0));
    auto bucket = graph::findBucket(variables, index);
    index += llvm::find(bucket->offsets, offset.getValue()) -
             bucket->offsets.begin();
  }
  return variables[index].getName();
}

/// True if what computes the value may write the variable itself: where all
/// else that uses the old value has been, and nothing uses this value once the
/// variable is used again. For a launch that reads it this is noted.
static bool canWriteVariable(Update update, const LiveRanges &live,
                             const SymbolTable &kernels) {
  if (update.value.getBytes() != getBytes(update.variable))
    return false;
  Commands others = getVariableUses(update.variable), after;
  Commands uses = getUses(update.value), earlier = uses;
  others.remove(update.store);
  earlier.remove(update.store);
  for (Operation *use : others)
    if (live.getOrder().precedes(update.store, use))
      after.insert(use);
  others.set_subtract(after);
  if (!live.precede(earlier, after))
    return false;
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
           !llvm::is_contained(launch.getOutputs(), update.variable) &&
           tryInPlace(launch, getComputation(launch, kernels), update.value,
                      update.variable);
  }
  return false;
}

/// Defines the variable before all that uses it.
static void moveToFront(Value variable) {
  Block &block = *variable.getParentBlock();
  if (auto part = variable.getDefiningOp<ViewOp>())
    part->moveBefore(&block.front());
  getRoot(variable)->moveBefore(&block.front());
}

/// A variable that gets two values is written by the first one's command before
/// the second is looked at. A value that goes to two variables lies in the
/// first of them, and is copied to the other.
static void updateEntry(EntryOp entry, const SymbolTable &kernels,
                        DecisionLog &log) {
  auto variables = graph::getVariables(entry->getParentOfType<ModuleOp>());
  LiveRanges live(entry);
  llvm::DenseSet<Operation *> placed;
  for (Update update : collectUpdates(entry)) {
    if (placed.contains(update.value))
      continue;
    StringRef name = getName(update.variable, variables);
    double bytes = update.value.getBound();
    if (!canWriteVariable(update, live, kernels)) {
      log.add(entry, "copied",
              ("the old value of " + name + " is read later").str(),
              {{"bytes", bytes}});
      continue;
    }
    log.add(entry, "in place", ("the new value of " + name).str(),
            {{"bytes", bytes}});
    update.store.erase();
    moveToFront(update.variable);
    placed.insert(update.value);
    update.value.replaceAllUsesWith(update.variable);
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
