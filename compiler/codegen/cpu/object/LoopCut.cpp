#include "compiler/codegen/cpu/object/LoopCut.h"

using namespace mlir;
using namespace tcc::cpu;

static bool readsMemory(Region &region) {
  return region
      .walk([](Operation *op) {
        return isa<scf::IfOp>(op) || isPure(op) ? WalkResult::advance()
                                                : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// Both branches must read: LLVM would gather from the one place or the other.
std::optional<LoopCut> LoopCut::find(scf::IfOp branch, scf::ForOp loop) {
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

Value LoopCut::emitPlace(OpBuilder &b, scf::ForOp loop) {
  Location loc = loop.getLoc();
  Value place = condition.getRhs();
  for (Value x : added)
    place = b.create<arith::SubIOp>(loc, place, x);
  for (Value x : subtracted)
    place = b.create<arith::AddIOp>(loc, place, x);
  place = b.create<arith::MinSIOp>(loc, place, loop.getUpperBound());
  return b.create<arith::MaxSIOp>(loc, place, loop.getLowerBound());
}
