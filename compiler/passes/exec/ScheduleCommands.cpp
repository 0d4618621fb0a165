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
  std::vector<unsigned> program = graph.getProgramOrder();
  std::vector<unsigned> greedy = graph.getSmallestOrder();
  int64_t programPeak = graph.getPeak(program);
  int64_t greedyPeak = graph.getPeak(greedy);
  if (greedyPeak >= programPeak)
    return programPeak;
  applyOrder(graph, greedy);
  log.add(block.getParentOp(), "reordered", "fewer bytes live at the peak",
          {{"bytes_before", double(programPeak)},
           {"bytes_after", double(greedyPeak)}});
  return greedyPeak;
}

void ScheduleCommandsPass::runOnOperation() {
  DecisionLog log(getOperation(), "schedule-commands");
  for (auto entry : getOperation().getOps<EntryOp>())
    scheduleBlock(entry.getBody().front(), log);
}

} // namespace tcc
