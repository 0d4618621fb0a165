//===- ControlGradients.cpp - Gradients of ifs ----------------------------===//
//
// The gradient of a region computes the region's values again.
//
//===----------------------------------------------------------------------===//
#include "dialects/graph/ops/ControlGradients.h"

using namespace mlir;
using namespace tcc::graph;

/// Fills `region` with the gradients of what `block` yields with respect to
/// `inputs`.
static LogicalResult differentiateBranch(OpBuilder builder, Region &region,
                                         Block &block, ValueRange seeds,
                                         ArrayRef<unsigned> seeded,
                                         ValueRange inputs) {
  builder.setInsertionPointToStart(&region.emplaceBlock());
  IRMapping mapping;
  SmallVector<Value> yields = cloneBody(builder, block, mapping);
  auto results = llvm::map_to_vector(
      seeded, [&](unsigned position) { return yields[position]; });
  SmallVector<Value> gradients;
  if (failed(differentiate(builder, results, seeds, inputs, gradients)))
    return failure();
  TensorEmitter emitter(builder, block.getTerminator()->getLoc());
  for (auto [gradient, input] : llvm::zip_equal(gradients, inputs))
    gradient = orZeros(emitter, gradient, input);
  builder.create<YieldOp>(emitter.loc, gradients);
  return success();
}

static bool hasCollectives(IfOp op) {
  return op
      ->walk([](Operation *nested) {
        return nested->hasTrait<OpTrait::IsCollective>()
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

LogicalResult IfOp::emitGradients(Gradients &gradients) {
  // Both branches must run the same collectives, while what is computed again
  // of a branch is what its own gradient needs.
  if (hasCollectives(*this))
    return emitOpError("with a collective in a branch has no derivative");
  if (!getDefinedSymbols().empty())
    return emitOpError("whose branches give different extents has no "
                       "derivative");
  SmallVector<Value> inputs = getWantedCaptures(*this, gradients), seeds;
  SmallVector<unsigned> seeded;
  for (OpResult result : getResults()) {
    if (!gradients.find(result))
      continue;
    seeds.push_back(gradients.get(result));
    seeded.push_back(result.getResultNumber());
  }
  OpBuilder &builder = gradients.getBuilder();
  auto branch = builder.create<IfOp>(getLoc(), ValueRange(inputs).getTypes(),
                                     getCondition());
  if (failed(differentiateBranch(builder, branch.getThenRegion(),
                                 getThenRegion().front(), seeds, seeded,
                                 inputs)) ||
      failed(differentiateBranch(builder, branch.getElseRegion(),
                                 getElseRegion().front(), seeds, seeded,
                                 inputs)))
    return failure();
  for (auto [input, part] : llvm::zip_equal(inputs, branch.getResults()))
    gradients.add(input, part);
  return success();
}
