//===- AssignLanes.cpp - Lanes for what is started ------------------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "dialects/exec/Effects.h"
#include "runtime/package/Format.h"

#include "mlir/IR/Builders.h"
#include <map>

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_ASSIGNLANESPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct AssignLanesPass : impl::AssignLanesPassBase<AssignLanesPass> {
  void runOnOperation() override;
};

/// The lanes of an entry point: that of copies, and one for each group of
/// ranks. Where the runtime has fewer, some share one.
using Lanes = std::map<std::optional<uint64_t>, uint64_t>;

/// The most lanes beside lane 0.
constexpr uint64_t kMostBeside = format::kMaxLanes - 1;

/// Gives the starts of one block their lanes.
class LaneAssigner {
public:
  LaneAssigner(Block &block, const Lanes &lanes) : block(block), lanes(lanes) {}

  void run(DecisionLog &log);

private:
  struct Command {
    Operation *op;
    uint64_t lane; ///< that uses the bytes
    SmallVector<Access> accesses;
  };

  Command describe(Operation *op) const;
  size_t countPredecessors(const Command &start) const;
  Value record(size_t count, Location loc);
  void assign(const Command &start);

  uint64_t getLane(Operation *start) const {
    return lanes.at(cast<CommandOpInterface>(start).getGroupOfRanks());
  }

  Block &block;
  const Lanes &lanes;
  std::vector<Command> commands; ///< of lane 0, so far
  /// How many commands of lane 0 a lane has waited for; none: not for its
  /// beginning either.
  llvm::DenseMap<uint64_t, size_t> known;
};

} // namespace

static Lanes findLanes(EntryOp entry) {
  Lanes lanes;
  entry.walk([&](CommandOpInterface command) {
    if (TokenOpInterface::isStart(command))
      lanes[command.getGroupOfRanks()] = 0;
  });
  uint64_t count = 0;
  for (auto &[group, lane] : lanes)
    lane = 1 + count++ % kMostBeside;
  return lanes;
}

/// How many of the commands must have ended when `start` begins: up to the last
/// that uses bytes that `start` writes, or writes some that it uses. For what
/// was started its wait stands, but on its own lane it ran before.
size_t LaneAssigner::countPredecessors(const Command &start) const {
  for (size_t count = commands.size(); count > 0; --count)
    if (const Command &command = commands[count - 1];
        command.lane != start.lane &&
        areInConflict(command.accesses, start.accesses))
      return count;
  return 0;
}

/// The place behind the first `count` commands of lane 0.
Value LaneAssigner::record(size_t count, Location loc) {
  OpBuilder builder(block.getParent());
  if (count > 0)
    builder.setInsertionPointAfter(commands[count - 1].op);
  else
    builder.setInsertionPointToStart(&block);
  auto type = TokenType::get(loc.getContext());
  return builder.create<RecordEventOp>(loc, type).getToken();
}

void LaneAssigner::assign(const Command &start) {
  uint64_t lane = start.lane;
  size_t count = countPredecessors(start);
  auto [place, isFirst] = known.try_emplace(lane, count);
  if (isFirst || place->second < count) {
    place->second = count;
    Value token = record(count, start.op->getLoc());
    OpBuilder(start.op).create<WaitOp>(start.op->getLoc(), token, lane);
  }
  Builder builder(start.op->getContext());
  start.op->setAttr("lane", builder.getI64IntegerAttr(int64_t(lane)));
}

/// A command of lane 0. At the wait for one that was started the bytes of that
/// come free.
LaneAssigner::Command LaneAssigner::describe(Operation *op) const {
  auto wait = dyn_cast<WaitOp>(op);
  if (wait && wait.getMarked().isStart())
    return {op, getLane(wait.getMarked()), getAccesses(wait.getMarked())};
  return {op, 0, getAccesses(op)};
}

void LaneAssigner::run(DecisionLog &log) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    for (Region &region : op.getRegions())
      LaneAssigner(region.front(), lanes).run(log);
    if (!isa<CommandOpInterface>(op))
      continue;
    if (!TokenOpInterface::isStart(&op)) {
      commands.push_back(describe(&op));
      continue;
    }
    assign({&op, getLane(&op), getAccesses(&op)});
    log.add(&op, "on a lane of its own", "it goes on beside other commands",
            {{"lane", double(getLane(&op))}});
  }
}

void AssignLanesPass::runOnOperation() {
  DecisionLog log(getOperation(), "assign-lanes");
  for (auto entry : getOperation().getOps<EntryOp>()) {
    if (entry.getLanes() > 1)
      continue; // it has them
    Lanes lanes = findLanes(entry);
    entry.setLanes(1 + std::min<uint64_t>(lanes.size(), kMostBeside));
    if (!lanes.empty())
      LaneAssigner(entry.getBody().front(), lanes).run(log);
  }
}

} // namespace tcc
