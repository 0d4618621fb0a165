//===- PlanMemory.cpp - Give scratch buffers their offsets ----------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/LiveRanges.h"
#include "compiler/passes/exec/memory/Placement.h"

#include "mlir/IR/Builders.h"
#include "mlir/Pass/PassManager.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_PLANMEMORYPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct PlanMemoryPass : impl::PlanMemoryPassBase<PlanMemoryPass> {
  void runOnOperation() override;
};

} // namespace

static void eraseUnused(EntryOp entry) {
  SmallVector<Operation *> ops;
  entry.walk([&](Operation *op) {
    if (isa<BufferOp, ViewOp>(op))
      ops.push_back(op);
  });
  for (Operation *op : llvm::reverse(ops))
    if (op->use_empty())
      op->erase();
}

static void planEntry(EntryOp entry, DecisionLog &log) {
  LiveRanges::Scratch scratch = LiveRanges(entry).getScratch();
  Placement placement = placeAllocations(scratch.allocations);
  for (auto [buffer, offset] : llvm::zip(scratch.buffers, placement.offsets))
    buffer.setOffset(offset);
  int64_t bound = getMaxLive(scratch.allocations);
  entry.setScratchBytes(placement.size);
  entry.setScratchBound(bound);
  log.add(entry, "placed", (entry.getSymName() + " arena").str(),
          {{"buffers", double(scratch.allocations.size())},
           {"bytes", double(placement.size)},
           {"bound_bytes", double(bound)}});
}

void PlanMemoryPass::runOnOperation() {
  DecisionLog log(getOperation(), "plan-memory");
  for (auto entry : getOperation().getOps<EntryOp>()) {
    eraseUnused(entry);
    planEntry(entry, log);
  }
}

void addMemoryPlan(OpPassManager &pm) {
  pm.addPass(createShareBuffersPass());
  // What runs beside other commands shares no bytes with them.
  pm.addPass(createAssignLanesPass());
  pm.addPass(createPackScalarsPass());
  pm.addPass(createPlanMemoryPass());
}

} // namespace tcc
