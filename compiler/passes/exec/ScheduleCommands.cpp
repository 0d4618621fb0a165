//===- ScheduleCommands.cpp - An order with less memory live --------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/Schedule.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_SCHEDULECOMMANDSPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct ScheduleCommandsPass
    : impl::ScheduleCommandsPassBase<ScheduleCommandsPass> {
  void runOnOperation() override;
};

} // namespace

/// Definitions move to the start of the block, then commands follow in `order`.
static void applyOrder(const BlockGraph &graph, ArrayRef<unsigned> order) {
  Block &block = graph.getBlock();
  Operation *last = nullptr;
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (isa<CommandOpInterface>(op))
      continue;
    if (last)
      op.moveAfter(last);
    else
      op.moveBefore(&block, block.begin());
    last = &op;
  }
  for (unsigned command : order)
    graph.getCommand(command)->moveBefore(&block, block.end());
}

/// Schedules inner blocks first. Returns the most bytes of scratch that `block`
/// and the blocks in it need at once.
static int64_t scheduleBlock(Block &block, DecisionLog &log) {
  BlockGraph graph(block);
  for (unsigned i = 0; i < graph.size(); ++i) {
    int64_t inner = 0;
    for (Region &region : graph.getCommand(i)->getRegions())
      inner = std::max(inner, scheduleBlock(region.front(), log));
    graph.setInnerBytes(i, inner);
  }
  std::vector<unsigned> best = graph.getProgramOrder();
  int64_t programPeak = graph.getPeak(best), bestPeak = programPeak;
  auto consider = [&](std::vector<unsigned> order) {
    if (int64_t peak = graph.getPeak(order); peak < bestPeak) {
      best = std::move(order);
      bestPeak = peak;
    }
  };
  std::vector<unsigned> greedy = graph.getSmallestOrder();
  consider(graph.getTightOrder(graph.getProgramOrder()));
  consider(graph.getTightOrder(greedy));
  consider(std::move(greedy));
  std::vector<unsigned> order = graph.getOverlappedOrder(best);
  if (order != graph.getProgramOrder())
    applyOrder(graph, order);
  if (bestPeak < programPeak)
    log.add(block.getParentOp(), "reordered", "fewer bytes live at the peak",
            {{"bytes_before", double(programPeak)},
             {"bytes_after", double(bestPeak)}});
  return bestPeak;
}

void ScheduleCommandsPass::runOnOperation() {
  DecisionLog log(getOperation(), "schedule-commands");
  for (auto entry : getOperation().getOps<EntryOp>())
    scheduleBlock(entry.getBody().front(), log);
}

} // namespace tcc
