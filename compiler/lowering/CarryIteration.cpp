//===- CarryIteration.cpp - Make the iteration number a carried value -----===//
#include "compiler/lowering/Passes.h"
#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Builders.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_CARRYITERATIONPASS
#include "compiler/lowering/Passes.h.inc"

namespace {

struct CarryIterationPass : impl::CarryIterationPassBase<CarryIterationPass> {
  void runOnOperation() override;
};

} // namespace

static Value createScalar(OpBuilder &builder, Location loc, int64_t value) {
  auto type = RankedTensorType::get({}, builder.getI64Type());
  return builder.create<ConstantOp>(loc, type,
                                    DenseElementsAttr::get(type, value));
}

/// A loop like `loop` that carries `init` too, after its other values.
static LoopOp createLoopWith(LoopOp loop, Value init) {
  OpBuilder builder(loop);
  size_t carried = loop.getInits().size();
  SmallVector<Value> inits(loop.getInits());
  inits.push_back(init);
  SmallVector<Type> types(loop.getResultTypes());
  types.insert(types.begin() + carried, init.getType());
  auto result =
      builder.create<LoopOp>(loop.getLoc(), types, loop.getTrips(),
                             loop.getCondition(), inits, loop.getCountAttr());
  result.getBody().takeBody(loop.getBody());
  for (unsigned i = 0, e = loop.getNumResults(); i < e; ++i)
    loop.getResult(i).replaceAllUsesWith(
        result.getResult(i < carried ? i : i + 1));
  return result;
}

static void carryIteration(LoopOp loop) {
  OpBuilder builder(loop);
  Location loc = loop.getLoc();
  size_t carried = loop.getInits().size();
  LoopOp result = createLoopWith(loop, createScalar(builder, loc, 0));
  loop.erase();

  Block &body = result.getBody().front();
  Value number =
      body.insertArgument(carried + 1, body.getArgument(0).getType(), loc);
  body.getArgument(0).replaceAllUsesWith(number);
  auto yield = cast<YieldOp>(body.getTerminator());
  builder.setInsertionPoint(yield);
  Value next =
      builder.create<AddOp>(loc, number, createScalar(builder, loc, 1));
  yield->insertOperands(carried + 1, next);
}

void CarryIterationPass::runOnOperation() {
  SmallVector<LoopOp> loops;
  getOperation()->walk([&](LoopOp loop) {
    if (!loop.getBody().front().getArgument(0).use_empty())
      loops.push_back(loop);
  });
  llvm::for_each(loops, carryIteration);
}

} // namespace tcc
