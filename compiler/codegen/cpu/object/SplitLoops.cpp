//===- SplitLoops.cpp - Cut loops where a condition changes ---------------===//
#include "compiler/codegen/cpu/object/LoopCut.h"
#include "compiler/codegen/cpu/object/WalkPlaces.h"
#include "compiler/codegen/passes/Passes.h"

#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace tcc {

using cpu::LoopCut;

#define GEN_PASS_DEF_SPLITLOOPSPASS
#include "compiler/codegen/passes/Passes.h.inc"

namespace {

struct SplitLoopsPass : impl::SplitLoopsPassBase<SplitLoopsPass> {
  void runOnOperation() override;
};

} // namespace

static bool isInnermost(scf::ForOp loop) {
  return !loop.getBody()
              ->walk([](scf::ForOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
}

static std::optional<LoopCut> findCut(scf::ForOp loop) {
  std::optional<LoopCut> found;
  loop.getBody()->walk<WalkOrder::PreOrder>([&](scf::IfOp branch) {
    found = LoopCut::find(branch, loop);
    return found ? WalkResult::interrupt() : WalkResult::advance();
  });
  return found;
}

/// Puts the branch that is taken where `branch` stands.
static void takeBranch(scf::IfOp branch, bool isTrue) {
  Region &region = isTrue ? branch.getThenRegion() : branch.getElseRegion();
  if (!region.empty()) {
    Operation *yield = region.front().getTerminator();
    branch.replaceAllUsesWith(SmallVector<Value>(yield->getOperands()));
    yield->erase();
    branch->getBlock()->getOperations().splice(branch->getIterator(),
                                               region.front().getOperations());
  }
  branch.erase();
}

/// A copy of `loop` in front of it, in which the condition is known.
static scf::ForOp copyLoop(OpBuilder &b, scf::ForOp loop, LoopCut &cut,
                           bool isTrue) {
  IRMapping map;
  auto copy = cast<scf::ForOp>(b.clone(*loop, map));
  Value condition = map.lookup(cut.condition.getResult());
  auto isBranch = [](Operation *user) { return isa<scf::IfOp>(user); };
  for (auto user = llvm::find_if(condition.getUsers(), isBranch);
       user != condition.user_end();
       user = llvm::find_if(condition.getUsers(), isBranch))
    takeBranch(cast<scf::IfOp>(*user), isTrue);
  OpBuilder inner(condition.getDefiningOp());
  Value known = inner.create<arith::ConstantIntOp>(loop.getLoc(), isTrue, 1);
  condition.replaceAllUsesWith(known);
  condition.getDefiningOp()->erase();
  return copy;
}

/// The loop up to where `cut` changes, and from there on.
static std::pair<scf::ForOp, scf::ForOp> split(scf::ForOp loop, LoopCut &cut) {
  OpBuilder b(loop);
  Value place = cut.emitPlace(b, loop);
  scf::ForOp first = copyLoop(b, loop, cut, true);
  first.setUpperBound(place);
  scf::ForOp second = copyLoop(b, loop, cut, false);
  second.setLowerBound(place);
  second.getInitArgsMutable().assign(first.getResults());
  loop.replaceAllUsesWith(second.getResults());
  loop.erase();
  return {first, second};
}

/// The few parts of a concatenation, say. Others keep their branches.
static void splitFully(scf::ForOp loop) {
  constexpr int64_t maxCuts = 7;
  SmallVector<scf::ForOp> parts = {loop};
  for (int64_t cuts = 0; !parts.empty() && cuts < maxCuts;) {
    scf::ForOp part = parts.pop_back_val();
    if (std::optional<LoopCut> cut = findCut(part)) {
      auto [first, second] = split(part, *cut);
      parts.append({second, first});
      ++cuts;
    }
  }
}

void SplitLoopsPass::runOnOperation() {
  SmallVector<scf::ForOp> loops;
  getOperation().walk([&](scf::ForOp loop) {
    if (isConstantIntValue(loop.getStep(), 1) && isInnermost(loop))
      loops.push_back(loop);
  });
  for (scf::ForOp loop : loops)
    splitFully(cpu::walkPlaces(loop));
}

} // namespace tcc
