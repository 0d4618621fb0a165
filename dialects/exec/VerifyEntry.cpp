//===- VerifyEntry.cpp - What holds over a whole entry point --------------===//
//
// Slots are set before they are read, each loop has a slot of its own, each
// token is waited for once and in its block, and all paths run the same
// collectives of each group in the same order.
//
//===----------------------------------------------------------------------===//
#include "dialects/exec/ExecOps.h"
#include "dialects/graph/Shape.h"

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include <map>

using namespace mlir;

namespace tcc::exec {

namespace {

/// The collectives of each group in their order; the order among groups is
/// free.
using Collectives = std::map<uint64_t, SmallVector<Operation *>>;

class EntryVerifier {
public:
  explicit EntryVerifier(EntryOp entry)
      : entry(entry), isSet(entry.getSlots()), isLoopSlot(entry.getSlots()) {}

  LogicalResult verify() {
    auto module = entry->getParentOfType<ModuleOp>();
    SmallVector<graph::SymbolAttr> all = graph::getSymbols(module);
    symbolsWithComputed = all.size();
    symbols = llvm::count_if(
        all, [](graph::SymbolAttr symbol) { return !symbol.getIsComputed(); });
    if (all.size() > entry.getSlots())
      return entry.emitOpError("has fewer slots than the module has symbols");
    isSet.set(0, symbols);
    if (failed(verifyRankSlot()))
      return failure();
    Collectives collectives;
    return verifyBlock(entry.getBody().front(), collectives);
  }

private:
  LogicalResult verifyBlock(Block &block, Collectives &collectives);
  LogicalResult verifyOp(Operation &op, Collectives &collectives);
  LogicalResult verifyLane(Operation &op);
  LogicalResult verifyBytes(BufferOp op);
  LogicalResult verifyMaps(Operation &op);
  LogicalResult verifyRankSlot();
  LogicalResult verifySetSlot(CommandOpInterface command);
  LogicalResult verifyIf(IfOp op, Collectives &collectives);
  bool dependsOnData(LoopOp op);
  LogicalResult verifyLoop(LoopOp op, Collectives &collectives);
  LogicalResult verifyToken(TokenOpInterface op);

  EntryOp entry;
  int64_t symbols = 0; ///< that inputs tell: the slots of these come first
  size_t symbolsWithComputed = 0;
  llvm::BitVector isSet;
  llvm::BitVector isLoopSlot;
};

static bool isSameGroup(const Collectives::value_type &lhs,
                        const Collectives::value_type &rhs) {
  return lhs.first == rhs.first &&
         llvm::equal(lhs.second, rhs.second, [](Operation *a, Operation *b) {
           return a->getName() == b->getName() &&
                  a->getAttrDictionary() == b->getAttrDictionary();
         });
}

static void append(const Collectives &more, Collectives &collectives) {
  for (const auto &[group, ops] : more)
    llvm::append_range(collectives[group], ops);
}

LogicalResult EntryVerifier::verifyBlock(Block &block,
                                         Collectives &collectives) {
  for (Operation &op : block)
    if (failed(verifyOp(op, collectives)))
      return failure();
  return success();
}

LogicalResult EntryVerifier::verifyOp(Operation &op, Collectives &collectives) {
  if (isa<ViewOp>(op))
    return success(); // its slots are read where it is used
  if (auto buffer = dyn_cast<BufferOp>(op))
    return verifyBytes(buffer);
  auto command = dyn_cast<CommandOpInterface>(op);
  if (!command)
    return op.emitOpError("is no command");
  if (failed(verifyLane(op)) || failed(verifyMaps(op)))
    return failure();
  if (auto branch = dyn_cast<IfOp>(op))
    return verifyIf(branch, collectives);
  if (auto loop = dyn_cast<LoopOp>(op))
    return verifyLoop(loop, collectives);
  if (std::optional<uint64_t> group = command.getGroupOfRanks())
    collectives[*group].push_back(&op);
  if (auto token = dyn_cast<TokenOpInterface>(op))
    return verifyToken(token);
  return verifySetSlot(command);
}

LogicalResult EntryVerifier::verifyLane(Operation &op) {
  uint64_t lane = cast<CommandOpInterface>(op).getLane();
  uint64_t lanes = entry.getLanes();
  if (lane >= lanes)
    return op.emitOpError("lane ")
           << int64_t(lane) << " is not below " << lanes;
  bool isOnHost =
      op.getNumRegions() > 0 || cast<CommandOpInterface>(op).getSetSlot() >= 0;
  if (isOnHost && lane != 0)
    return op.emitOpError("is done by the host, which issues lane 0");
  return success();
}

/// A buffer has room for the largest size: its symbols need no value yet.
LogicalResult EntryVerifier::verifyBytes(BufferOp op) {
  AffineMap bytes = op.getBytes();
  for (unsigned slot = symbolsWithComputed; slot < bytes.getNumSymbols();
       ++slot)
    if (bytes.isFunctionOfSymbol(slot) &&
        (slot >= isSet.size() || !isSet[slot]))
      return op.emitOpError("reads size slot ")
             << slot << ", which is not set here";
  return success();
}

/// The maps of an op and of the views that it uses read slots that are set.
LogicalResult EntryVerifier::verifyMaps(Operation &op) {
  auto check = [&](Operation &owner) -> LogicalResult {
    for (NamedAttribute attr : owner.getAttrs()) {
      auto map = dyn_cast<AffineMapAttr>(attr.getValue());
      if (!map)
        continue;
      for (unsigned slot = 0; slot < map.getValue().getNumSymbols(); ++slot)
        if (map.getValue().isFunctionOfSymbol(slot) &&
            (slot >= isSet.size() || !isSet[slot]))
          return op.emitOpError("reads size slot ")
                 << slot << ", which is not set here";
    }
    return success();
  };
  if (failed(check(op)))
    return failure();
  for (Value operand : op.getOperands())
    for (auto view = operand.getDefiningOp<ViewOp>(); view;
         view = view.getBase().getDefiningOp<ViewOp>())
      if (failed(check(*view)))
        return failure();
  return success();
}

LogicalResult EntryVerifier::verifyRankSlot() {
  std::optional<int64_t> slot = entry.getRankSlot();
  if (!slot)
    return success();
  if (*slot < symbols || *slot >= static_cast<int64_t>(isSet.size()))
    return entry.emitOpError("has the rank in size slot ")
           << *slot << ", expected one in [" << symbols << ", " << isSet.size()
           << ")";
  isSet.set(*slot);
  return success();
}

LogicalResult EntryVerifier::verifySetSlot(CommandOpInterface command) {
  int64_t slot = command.getSetSlot();
  if (slot < 0)
    return success();
  if (slot < symbols || slot >= static_cast<int64_t>(isSet.size()))
    return command.emitOpError("sets size slot ")
           << slot << ", expected one in [" << symbols << ", " << isSet.size()
           << ")";
  if (slot == entry.getRankSlot())
    return command.emitOpError("sets size slot ")
           << slot << ", which has the rank";
  isSet.set(slot);
  return success();
}

LogicalResult EntryVerifier::verifyIf(IfOp op, Collectives &collectives) {
  llvm::BitVector before = isSet;
  Collectives inThen, inElse;
  if (failed(verifyBlock(op.getThenRegion().front(), inThen)))
    return failure();
  std::swap(before, isSet);
  if (failed(verifyBlock(op.getElseRegion().front(), inElse)))
    return failure();
  isSet &= before;
  if (!llvm::equal(inThen, inElse, isSameGroup))
    return op.emitOpError("has branches with different collectives");
  append(inThen, collectives);
  return success();
}

/// True if ranks may run different numbers of iterations: they agree on symbols
/// alone.
bool EntryVerifier::dependsOnData(LoopOp op) {
  if (op.getCondition() || !op.getTrips())
    return bool(op.getCondition());
  AffineMap trips = *op.getTrips();
  for (unsigned slot = symbols; slot < trips.getNumSymbols(); ++slot)
    if (trips.isFunctionOfSymbol(slot))
      return true;
  return false;
}

LogicalResult EntryVerifier::verifyLoop(LoopOp op, Collectives &collectives) {
  if (failed(verifySetSlot(op)))
    return failure();
  if (isLoopSlot[op.getSlot()])
    return op.emitOpError("shares size slot ")
           << op.getSlot() << " with another loop";
  isLoopSlot.set(op.getSlot());
  // A loop may run no iteration: what its body sets is not set afterwards.
  llvm::BitVector before = isSet;
  Collectives inBody;
  if (failed(verifyBlock(op.getBody().front(), inBody)))
    return failure();
  isSet = before;
  if (!inBody.empty() && dependsOnData(op))
    return op.emitOpError("runs collectives as often as its data says");
  append(inBody, collectives);
  return success();
}

LogicalResult EntryVerifier::verifyToken(TokenOpInterface op) {
  Value token = op.getToken();
  if (!token.hasOneUse())
    return op.emitOpError("has a token that is waited for ")
           << std::distance(token.use_begin(), token.use_end())
           << " times, expected once";
  if (token.getUsers().begin()->getBlock() != op->getBlock())
    return op.emitOpError("has a token that is waited for in another block");
  return success();
}

} // namespace

LogicalResult verifyEntry(EntryOp entry) {
  return EntryVerifier(entry).verify();
}

} // namespace tcc::exec
