//===- PlanMemory.cpp - Give scratch buffers their offsets ----------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "compiler/passes/exec/memory/Liveness.h"
#include "compiler/passes/exec/memory/Placement.h"
#include "runtime/base/Alignment.h"

#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

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
  std::vector<Lifetime> lifetimes = computeLifetimes(entry);
  std::vector<Allocation> allocations;
  for (Lifetime &lifetime : lifetimes)
    allocations.push_back({lifetime.begin, lifetime.end,
                           static_cast<int64_t>(llvm::alignTo(
                               lifetime.buffer.getBound(), kTensorAlignment))});
  Placement placement = placeAllocations(allocations);
  for (auto [lifetime, offset] : llvm::zip(lifetimes, placement.offsets))
    lifetime.buffer.setOffset(offset);
  int64_t bound = getMaxLive(allocations);
  entry.setScratchBytes(placement.size);
  entry.setScratchBound(bound);
  log.add(entry, "placed", (entry.getSymName() + " arena").str(),
          {{"buffers", double(allocations.size())},
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

} // namespace tcc
