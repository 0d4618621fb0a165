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
/// A longer axis is cut into panels of at most so many elements.
static constexpr int64_t kLongAxis = 256;
static constexpr int64_t kMostRows = 32;
static constexpr int64_t kLeastRows = 8;

static bool hasColumns(ReduceOp op) {
  RankedTensorType type = op.getX().getType();
  ArrayRef<int64_t> axes = op.getAxes();
  return !axes.empty() && axes.back() + 1 < type.getRank() &&
         type.hasStaticShape();
}

/// How many of the last axes of a long column to reduce first, for the shortest
/// columns in both steps; 0 for a reduction to keep.
static unsigned countInnerAxes(ReduceOp op) {
  RankedTensorType type = op.getX().getType();
  ArrayRef<int64_t> axes = op.getAxes();
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

/// Elements of the panels that a long last axis is cut into; 0: it stays.
static int64_t choosePanel(ReduceOp op) {
  int64_t extent = op.getX().getType().getDimSize(op.getAxes().back());
  if (extent <= kLongAxis)
    return 0;
  for (int64_t rows = kMostRows; rows >= kLeastRows; --rows)
    if (extent % rows == 0)
      return rows;
  return 0;
}

/// The same with the last reduced axis cut into panels of `rows` elements.
static ReduceOp cutAxis(ReduceOp op, int64_t rows) {
  OpBuilder builder(op);
  RankedTensorType type = op.getX().getType();
  SmallVector<int64_t> axes(op.getAxes()), shape(type.getShape());
  int64_t axis = axes.back();
  shape[axis] /= rows;
  shape.insert(shape.begin() + axis + 1, rows);
  axes.push_back(axis + 1);
  Value x = builder.create<ReshapeOp>(
      op.getLoc(), RankedTensorType::get(shape, type.getElementType()),
      op.getX());
  auto cut = builder.create<ReduceOp>(op.getLoc(), op.getKind(), x, axes);
  op.replaceAllUsesWith(cut.getResult());
  op.erase();
  return cut;
}

/// The last `innerCount` axes first. Narrow floats stay wide until the last
/// step. Returns what reduces the others.
static ReduceOp splitAxes(ReduceOp op, unsigned innerCount) {
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
  return second;
}

static void split(ReduceOp op) {
  while (hasColumns(op)) {
    if (int64_t rows = choosePanel(op))
      op = splitAxes(cutAxis(op, rows), 1);
    else if (unsigned count = countInnerAxes(op))
      op = splitAxes(op, count);
    else
      return;
  }
}

void SplitReductionsPass::runOnOperation() {
  SmallVector<ReduceOp> found;
  getOperation()->walk([&](ReduceOp op) { found.push_back(op); });
  for (ReduceOp op : found)
    split(op);
}

} // namespace tcc
