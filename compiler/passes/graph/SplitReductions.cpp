//===- SplitReductions.cpp - Long columns in several steps ----------------===//
#include "compiler/passes/graph/Passes.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/ops/TensorEmitter.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_SPLITREDUCTIONSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct SplitReductionsPass
    : impl::SplitReductionsPassBase<SplitReductionsPass> {
  void runOnOperation() override;
};

} // namespace

/// Shorter columns are combined fast and exactly enough.
static constexpr int64_t kLongColumn = 512;

/// How many of the last axes of a long column to reduce first, for the shortest
/// columns in both steps; 0 for a reduction to keep.
static unsigned countInnerAxes(ReduceOp op) {
  RankedTensorType type = op.getX().getType();
  ArrayRef<int64_t> axes = op.getAxes();
  bool hasColumns = !axes.empty() && axes.back() + 1 < type.getRank();
  if (!hasColumns || !type.hasStaticShape())
    return 0;
  int64_t count = 1, inner = 1;
  for (int64_t axis : axes)
    count *= type.getDimSize(axis);
  int64_t longest = count;
  unsigned best = 0;
  for (unsigned taken = 1; taken < axes.size() && count >= kLongColumn;
       ++taken) {
    inner *= type.getDimSize(axes[axes.size() - taken]);
    if (std::max(inner, count / inner) < longest) {
      longest = std::max(inner, count / inner);
      best = taken;
    }
  }
  return best;
}

/// Narrow floats stay wide until the last step.
static void split(ReduceOp op, unsigned innerCount) {
  OpBuilder builder(op);
  TensorEmitter emitter(builder, op.getLoc());
  ArrayRef<int64_t> axes = op.getAxes();
  auto first = builder.create<ReduceOp>(op.getLoc(), op.getKind(),
                                        emitter.widen(op.getX()),
                                        axes.take_back(innerCount));
  auto second = builder.create<ReduceOp>(op.getLoc(), op.getKind(), first,
                                         axes.drop_back(innerCount));
  op.replaceAllUsesWith(emitter.castTo(second, op.getType()));
  op.erase();
  if (unsigned count = countInnerAxes(second))
    split(second, count);
}

void SplitReductionsPass::runOnOperation() {
  SmallVector<std::pair<ReduceOp, unsigned>> found;
  getOperation()->walk([&](ReduceOp op) {
    if (unsigned count = countInnerAxes(op))
      found.push_back({op, count});
  });
  for (auto [op, count] : found)
    split(op, count);
}

} // namespace tcc
