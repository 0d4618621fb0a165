#include "compiler/codegen/cuda/kernels/TensorAttention.h"
#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/passes/graph/CausalMask.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

static constexpr int64_t kMaxWarps = 4;

SmallVector<Goal> getGoals(FusedOp region) {
  Operation *op = codegen::getAnchor(region);
  auto gradient = dyn_cast<AttentionGradientOp>(op);
  if (!gradient)
    return {isa<AttentionOp>(op) ? Goal::result : Goal::normalizer};
  switch (gradient.getOf()) {
  case AttentionOperand::query:
    return {Goal::query};
  case AttentionOperand::key:
    return {Goal::key};
  case AttentionOperand::value:
    return {Goal::value};
  case AttentionOperand::all:
    return {Goal::query, Goal::keyAndValue};
  case AttentionOperand::mask:
    return {Goal::mask};
  }
  llvm_unreachable("covered switch");
}

static Matrix getMatrix(Value tensor) {
  return {tensor, getExtents(tensor).back()};
}

TensorPlan::TensorPlan(FusedOp region, ArrayRef<SymbolAttr> symbols, Goal goal)
    : op(cast<AttentionOpInterface>(codegen::getAnchor(region))), goal(goal),
      batch(getExtents(op.getQuery())), isCausal(op->hasAttr(kCausalAttr)),
      narrow(getElementTypeOrSelf(op.getQuery())) {
  batch.pop_back_n(2);
  ownScores = getMatrix(op.getQuery());
  walkedScores = getMatrix(op.getKey());
  if (auto attention = dyn_cast<AttentionOp>(*op)) {
    byWeights = getMatrix(attention.getValue());
    guard = attention.getGuard();
  } else if (auto gradient = dyn_cast<AttentionGradientOp>(*op)) {
    ownSlopes = getMatrix(gradient.getGradient());
    walkedSlopes = getMatrix(gradient.getValue());
    normalizer = gradient.getNormalizer();
    share = gradient.getShare();
    guard = gradient.getGuard();
    if (ownsKeys()) {
      std::swap(ownScores, walkedScores);
      std::swap(ownSlopes, walkedSlopes);
    }
    if (goal == Goal::value || goal == Goal::keyAndValue)
      byWeights = walkedSlopes;
    if (goal == Goal::value)
      ownSlopes = walkedSlopes = {};
    else if (goal != Goal::mask)
      bySlopes = walkedScores;
  }
  own = getExtent(ownScores.tensor, batch.size());
  walked = getExtent(walkedScores.tensor, batch.size());
  int64_t most = std::max<int64_t>(1, getRange(own, symbols).max);
  warps = std::min<int64_t>(kMaxWarps, llvm::divideCeil(most, kFragmentRows));
}

Extents TensorPlan::getMaskBlocks() {
  Extents blocks(ArrayRef(getExtents(op.getMask())).take_front(batch.size()));
  blocks.push_back(getExtent(op->getResult(0), 0));
  blocks.push_back(countTiles());
  blocks.push_back(walked.ceilDiv(kSteps));
  return blocks;
}

Extents TensorPlan::getMaskRepeats() {
  Extents repeats, mask = getExtents(op.getMask());
  for (auto [whole, part] : llvm::zip_first(batch, mask))
    repeats.push_back(isEqual(whole, part)
                          ? getAffineConstantExpr(1, whole.getContext())
                          : whole.floorDiv(part));
  return repeats;
}

FailureOr<LaunchPlan> planTensorAttention(FusedOp region,
                                          ArrayRef<SymbolAttr> symbols) {
  SmallVector<Goal> goals = getGoals(region);
  TensorPlan plan(region, symbols, goals.front());
  if (plan.goal == Goal::mask)
    return LaunchPlan{getNumElements(plan.getMaskBlocks(), region.getContext()),
                      plan.getThreads()};
  AffineExpr batch = getNumElements(plan.batch, region.getContext());
  return LaunchPlan{batch * int64_t(goals.size()) * plan.countTiles(),
                    plan.getThreads()};
}

} // namespace tcc::cuda
