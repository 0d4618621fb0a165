//===- SplitLoops.cpp - Cut loops where a condition changes ---------------===//
#include "compiler/codegen/cpu/object/LoopCut.h"
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

static bool readsMemory(Region &region) {
  return region
      .walk([](Operation *op) {
        return isa<scf::IfOp>(op) || isPure(op) ? WalkResult::advance()
                                                : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Both branches must read: LLVM would gather from the one place or the other.
std::optional<LoopCut> cpu::LoopCut::find(scf::IfOp branch, scf::ForOp loop) {
  if (!readsMemory(branch.getThenRegion()) ||
      !readsMemory(branch.getElseRegion()))
    return std::nullopt;
  auto isFixed = [&](Value x) { return loop.isDefinedOutsideOfLoop(x); };
  LoopCut cut{branch.getCondition().getDefiningOp<arith::CmpIOp>(), {}, {}};
  if (!cut.condition || isFixed(cut.condition) ||
      cut.condition.getPredicate() != arith::CmpIPredicate::slt ||
      !isFixed(cut.condition.getRhs()))
    return std::nullopt;
  Value x = cut.condition.getLhs();
  while (x != loop.getInductionVar()) {
    auto add = x.getDefiningOp<arith::AddIOp>();
    auto sub = x.getDefiningOp<arith::SubIOp>();
    if (sub && isFixed(sub.getRhs())) {
      cut.subtracted.push_back(sub.getRhs());
      x = sub.getLhs();
      continue;
    }
    if (!add || isFixed(add.getLhs()) == isFixed(add.getRhs()))
      return std::nullopt;
    bool isLeft = isFixed(add.getLhs());
    cut.added.push_back(isLeft ? add.getLhs() : add.getRhs());
    x = isLeft ? add.getRhs() : add.getLhs();
  }
  return cut;
}

Value cpu::LoopCut::emitPlace(OpBuilder &b, scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value place = condition.getRhs();
  for (Value x : added)
    place = b.create<arith::SubIOp>(loc, place, x);
  for (Value x : subtracted)
    place = b.create<arith::AddIOp>(loc, place, x);
  place = b.create<arith::MinSIOp>(loc, place, loop.getUpperBound());
  return b.create<arith::MaxSIOp>(loc, place, loop.getLowerBound());
}

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
    if (!cpu::walkPlaces(loop))
      splitFully(loop);
}

} // namespace tcc
