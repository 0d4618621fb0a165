#include "dialects/exec/Effects.h"

using namespace mlir;

namespace tcc::exec {

using Kind = Resource::Kind;

/// The slots that the maps of `op` read.
static void addSlots(Operation *op, Effects &effects) {
  for (NamedAttribute attr : op->getAttrs())
    if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()))
      for (unsigned slot = 0; slot < map.getValue().getNumSymbols(); ++slot)
        if (map.getValue().isFunctionOfSymbol(slot))
          effects.reads.insert({Kind::slot, slot});
}

/// Runs `visit` on the views that lead to `buffer`.
static void walkViews(Value buffer, llvm::function_ref<void(ViewOp)> visit) {
  while (auto view = buffer.getDefiningOp<ViewOp>()) {
    visit(view);
    buffer = view.getBase();
  }
}

static uintptr_t getId(Operation *op) {
  return reinterpret_cast<uintptr_t>(op);
}

/// True if another lane knows from `op` how far its lane has come, or its lane
/// from it.
static bool ordersLanes(Operation *op) {
  if (auto wait = dyn_cast<WaitOp>(op))
    return wait.joinsLanes();
  auto token = dyn_cast<TokenOpInterface>(op);
  return token && token.joinsLanes();
}

/// What is listed elsewhere is one place however many buffers name it, and a
/// state that is updated in place is one for both of its values. All scratch
/// that has an offset lies in the arena of the entry point.
Resource getPlace(BufferOp root) {
  if (root.getIndex())
    return {Kind::place, uintptr_t(*root.getIndex()), root.getStorage(),
            root.getNext() && !root.getInPlace()};
  bool isInArena = root.getOffset().has_value();
  Operation *owner = isInArena ? root->getParentOfType<EntryOp>() : root;
  return {Kind::place, getId(owner), root.getStorage()};
}

static void addBuffers(CommandOpInterface command, Effects &effects) {
  for (Value buffer : command.getReads())
    effects.reads.insert(getPlace(getRoot(buffer)));
  for (Value buffer : command.getWrites())
    effects.writes.insert(getPlace(getRoot(buffer)));
}

/// A wait keeps its place among what uses the buffers of what it waits for.
Effects getEffects(Operation *command) {
  Effects effects;
  command->walk([&](CommandOpInterface nested) {
    addBuffers(nested, effects);
    if (nested.getSetSlot() >= 0)
      effects.writes.insert({Kind::slot, uintptr_t(nested.getSetSlot())});
    if (std::optional<uint64_t> group = nested.getGroupOfRanks())
      effects.writes.insert({Kind::group, *group});
    if (isa<TokenOpInterface>(*nested))
      effects.writes.insert({Kind::token, getId(nested)});
    if (auto wait = dyn_cast<WaitOp>(*nested)) {
      effects.reads.insert({Kind::token, getId(wait.getMarked())});
      addBuffers(cast<CommandOpInterface>(*wait.getMarked()), effects);
    }
    auto &lanes = ordersLanes(nested) ? effects.writes : effects.reads;
    lanes.insert({Kind::lane, nested.getLane()});
    addSlots(nested, effects);
    for (Value operand : nested->getOperands())
      walkViews(operand, [&](ViewOp view) { addSlots(view, effects); });
  });
  return effects;
}

/// The bytes of `buffer` in its place: all of its root where that depends on
/// size slots.
static Access getAccess(Value buffer, bool isWrite) {
  BufferOp root = getRoot(buffer);
  int64_t begin = root.getOffset().value_or(0);
  Access access = {getPlace(root), begin, begin + int64_t(root.getBound()),
                   isWrite};
  bool isKnown = true;
  walkViews(buffer, [&](ViewOp view) {
    auto offset = dyn_cast<AffineConstantExpr>(view.getOffset().getResult(0));
    isKnown &= bool(offset);
    begin += offset ? offset.getValue() : 0;
  });
  if (auto view = buffer.getDefiningOp<ViewOp>(); view && isKnown) {
    access.begin = begin;
    access.end = begin + int64_t(view.getBound());
  }
  return access;
}

SmallVector<Access> getAccesses(Operation *command) {
  SmallVector<Access> accesses;
  auto add = [&](Value buffer, bool isWrite) {
    if (getRoot(buffer).getStorage() != StorageClass::fault)
      accesses.push_back(getAccess(buffer, isWrite));
  };
  command->walk([&](CommandOpInterface nested) {
    for (Value buffer : nested.getReads())
      add(buffer, /*isWrite=*/false);
    for (Value buffer : nested.getWrites())
      add(buffer, /*isWrite=*/true);
  });
  return accesses;
}

static bool shareBytes(const Access &a, const Access &b) {
  return a.place == b.place && a.begin < b.end && b.begin < a.end;
}

bool areInConflict(ArrayRef<Access> lhs, ArrayRef<Access> rhs) {
  return llvm::any_of(lhs, [&](const Access &a) {
    return llvm::any_of(rhs, [&](const Access &b) {
      return (a.isWrite || b.isWrite) && shareBytes(a, b);
    });
  });
}

bool mayOverlap(BufferOp a, BufferOp b) {
  return shareBytes(getAccess(a, /*isWrite=*/false),
                    getAccess(b, /*isWrite=*/false));
}

} // namespace tcc::exec
