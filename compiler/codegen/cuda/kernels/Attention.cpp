//===- Attention.cpp - softmax(query key^T * scale + mask) value ----------===//
//
// A block has some queries of one batch and goes through the keys some at a
// time: their scores become weights, relative to the largest score so far, that
// the values are summed with. Sums that a larger score makes too large are
// scaled when it comes. A thread has some rows of scores, shared with the 15
// next to it, and the same rows of the result.
//
//===----------------------------------------------------------------------===//

#include "compiler/codegen/cuda/kernels/Product.h"
#include "compiler/codegen/cuda/kernels/RunningSoftmax.h"
#include "compiler/codegen/cuda/kernels/SharedTile.h"
#include "compiler/codegen/cuda/kernels/TensorAttention.h"
#include "compiler/codegen/region/Sums.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

namespace {

/// Threads of a block: so many rows of so many.
constexpr int64_t kSide = 16;
constexpr int64_t kThreads = kSide * kSide;
/// Columns of the result of a thread, and of a block.
constexpr int64_t kThreadColumns = 4;
constexpr int64_t kColumns = kSide * kThreadColumns;
/// Steps of a product without a loop. Where the loops around have one turn,
/// ptxas loads the operands of all steps first, more than there are registers.
constexpr int64_t kSteps = 8;

struct AttentionPlan {
  AttentionOp op;
  Extents batch; // axes
  AffineExpr queries, keys, depth, columns;
  Type sum;
  /// Queries of a block, and keys and steps of depth at a time.
  int64_t tileRows, tileKeys = 2 * kSide, tileDepth = 32;

  AttentionPlan(FusedOp region, ArrayRef<SymbolAttr> symbols);
  int64_t getThreadRows() const { return tileRows / kSide; }
  int64_t getThreadKeys() const { return tileKeys / kSide; }
  Extents getBlockExtents() const {
    Extents extents = batch;
    extents.push_back(queries.ceilDiv(tileRows));
    extents.push_back(columns.ceilDiv(kColumns));
    return extents;
  }
};

class AttentionEmitter {
public:
  AttentionEmitter(KernelBuilder &b, DeviceFrame &frame);
  void emit();

private:
  using Values = SmallVector<Value>;

  KernelBuilder &b;
  DeviceFrame &frame;
  AttentionPlan plan;
  SharedTile queryTile, keyTile, weightTile, valueTile;
  Values batch;                // indices
  Value firstRow, firstColumn; // of the block
  Value row, column, side;     // this thread's first ones, its place in the row
  Value lowest, none;          // -inf, 0

  Value size(AffineExpr expression) { return frame.size(b, expression); }
  Value constant(double value) {
    return b.create<arith::ConstantOp>(b.getFloatAttr(plan.sum, value));
  }
  Value select(Value condition, Value x, Value y) {
    return b.create<arith::SelectOp>(condition, x, y);
  }
  SharedTile allocate(int64_t lanes, int64_t steps);
  void findTile();
  Value clamp(Value index, AffineExpr extent) {
    return b.min(index, b.sub(size(extent), b.index(1)));
  }
  Value pull(Value tensor, Value i, Value j);
  void fill(const SharedTile &tile, Value tensor, bool stepsAreColumns,
            Value firstLane, AffineExpr lanes, Value firstStep,
            AffineExpr steps);
  Values emitSteps(const SharedTile &left, const SharedTile &right,
                   Value firstLane, int64_t lanes, ValueRange sums);
  Values emitProducts(Value firstKey);
  Value emitScore(Value product, Value i, Value j);
  Values emitKeys(Value firstKey, ValueRange carried);
  void store(ValueRange sums, ValueRange totals);
  Value emitFactor(Value total);
};

} // namespace

AttentionPlan::AttentionPlan(FusedOp region, ArrayRef<SymbolAttr> symbols)
    : op(cast<AttentionOp>(codegen::getAnchor(region))),
      batch(getExtents(op.getResult())) {
  columns = batch.pop_back_val();
  queries = batch.pop_back_val();
  keys = getExtent(op.getKey(), batch.size());
  depth = getExtent(op.getKey(), batch.size() + 1);
  sum = codegen::getSumType(getElementTypeOrSelf(op.getResult()));
  bool isWide = sum.getIntOrFloatBitWidth() > 32;
  int64_t rows = getRange(queries, symbols).max;
  tileRows = rows <= kSide ? kSide : isWide ? 2 * kSide : 4 * kSide;
  if (isWide)
    tileDepth /= 2;
}

AttentionEmitter::AttentionEmitter(KernelBuilder &b, DeviceFrame &frame)
    : b(b), frame(frame), plan(frame.region, frame.symbols),
      queryTile(allocate(plan.tileRows, plan.tileDepth)),
      keyTile(allocate(plan.tileKeys, plan.tileDepth)),
      weightTile(allocate(plan.tileRows, plan.tileKeys)),
      valueTile(allocate(kColumns, plan.tileKeys)), lowest(constant(-INFINITY)),
      none(constant(0)) {}

SharedTile AttentionEmitter::allocate(int64_t lanes, int64_t steps) {
  int64_t count = SharedTile::getSize(lanes, steps);
  return {frame.allocateShared(b, plan.sum, count), b.index(0), lanes, steps};
}

void AttentionEmitter::findTile() {
  auto sizes = llvm::map_to_vector(plan.getBlockExtents(),
                                   [&](AffineExpr e) { return size(e); });
  batch = b.delinearize(frame.block, sizes);
  firstColumn = b.mul(batch.pop_back_val(), b.index(kColumns));
  firstRow = b.mul(batch.pop_back_val(), b.index(plan.tileRows));
  row =
      b.mul(b.div(frame.thread, b.index(kSide)), b.index(plan.getThreadRows()));
  side = b.rem(frame.thread, b.index(kSide));
  column = b.mul(side, b.index(kThreadColumns));
}

// --- Operands

/// The element of a matrix of this batch.
Value AttentionEmitter::pull(Value tensor, Value i, Value j) {
  Values at = codegen::alignBatch(b, tensor, plan.batch, batch);
  at.append({i, j});
  Value x = frame.elements.element(b, frame.loc, tensor, at);
  return b.widen(x, plan.sum, /*isUnsigned=*/false);
}

/// Reads nothing outside of the operand: zeros follow the steps, and the last
/// lane is repeated.
void AttentionEmitter::fill(const SharedTile &tile, Value tensor,
                            bool stepsAreColumns, Value firstLane,
                            AffineExpr lanes, Value firstStep,
                            AffineExpr steps) {
  int64_t stepAxis = batch.size() + (stepsAreColumns ? 1 : 0);
  auto getElement = [&](Value lane, Value step) -> Value {
    lane = b.add(firstLane, lane);
    if (!lanes.isMultipleOf(tile.lanes))
      lane = clamp(lane, lanes);
    Value all = b.add(firstStep, step), inside = all;
    if (!steps.isMultipleOf(tile.steps))
      inside = clamp(all, steps);
    Value x = pull(tensor, stepsAreColumns ? lane : inside,
                   stepsAreColumns ? inside : lane);
    return inside == all ? x : select(b.less(all, size(steps)), x, none);
  };
  tile.fill(b, frame.thread, kThreads, isAdjacent(tensor, stepAxis),
            getElement);
}

// --- Weights

/// Adds the products of this thread's rows of `left` and of some lanes of
/// `right` over all steps of the tiles.
SmallVector<Value> AttentionEmitter::emitSteps(const SharedTile &left,
                                               const SharedTile &right,
                                               Value firstLane, int64_t lanes,
                                               ValueRange sums) {
  auto emitPart = [&](Value first, ValueRange carried) {
    Values sums(carried);
    for (int64_t i = 0; i < kSteps; ++i) {
      Value step = b.add(first, b.index(i));
      Values x = left.read(b, {row, step}, plan.getThreadRows());
      Values y = right.read(b, {firstLane, step}, lanes);
      addProducts(b, x, y, sums);
    }
    return sums;
  };
  return b.loop(b.index(0), b.index(left.steps), b.index(kSteps), sums,
                emitPart);
}

/// The products of this thread's queries and keys: chains over the depth.
SmallVector<Value> AttentionEmitter::emitProducts(Value firstKey) {
  Values sums(plan.getThreadRows() * plan.getThreadKeys(), none);
  Value key = b.mul(side, b.index(plan.getThreadKeys()));
  auto emitPart = [&](Value first, ValueRange carried) {
    fill(queryTile, plan.op.getQuery(), true, firstRow, plan.queries, first,
         plan.depth);
    fill(keyTile, plan.op.getKey(), true, firstKey, plan.keys, first,
         plan.depth);
    emitBarrier(b);
    Values sums =
        emitSteps(queryTile, keyTile, key, plan.getThreadKeys(), carried);
    emitBarrier(b);
    return sums;
  };
  return b.loop(b.index(0), size(plan.depth), b.index(plan.tileDepth), sums,
                emitPart);
}

Value AttentionEmitter::emitScore(Value product, Value i, Value j) {
  double scale = plan.op.getScale().convertToDouble();
  Value x = b.create<arith::MulFOp>(product, constant(scale));
  if (Value mask = plan.op.getMask())
    x = b.create<arith::AddFOp>(x, pull(mask, clamp(i, plan.queries), j));
  return x;
}

/// One step over keys. Carried are the largest scores and the sums of weights
/// of this thread's rows, then the sums of the result.
SmallVector<Value> AttentionEmitter::emitKeys(Value firstKey,
                                              ValueRange carried) {
  int64_t rows = plan.getThreadRows(), keys = plan.getThreadKeys();
  Values state(carried), scores = emitProducts(firstKey);
  MutableArrayRef<Value> sums = MutableArrayRef(state).drop_front(2 * rows);
  Value key = b.mul(side, b.index(keys));
  for (int64_t r = 0; r < rows; ++r) {
    auto part = MutableArrayRef(scores).slice(r * keys, keys);
    Value i = b.add(firstRow, b.add(row, b.index(r)));
    for (auto [c, score] : llvm::enumerate(part)) {
      Value j = b.add(firstKey, b.add(key, b.index(c)));
      score = emitScore(score, i, clamp(j, plan.keys));
      score = select(b.less(j, size(plan.keys)), score, lowest);
    }
    auto pointers = llvm::map_to_vector(part, [](Value &x) { return &x; });
    Value scale =
        emitRunningWeights(b, pointers, kSide, state[r], state[rows + r]);
    for (Value &sum : sums.slice(r * kThreadColumns, kThreadColumns))
      sum = b.create<arith::MulFOp>(sum, scale);
  }
  for (int64_t c = 0; c < keys; ++c)
    for (int64_t r = 0; r < rows; ++r)
      weightTile.store(b, scores[r * keys + c],
                       {b.add(row, b.index(r)), b.add(key, b.index(c))});
  fill(valueTile, plan.op.getValue(), false, firstColumn, plan.columns,
       firstKey, plan.keys);
  emitBarrier(b);
  llvm::copy(emitSteps(weightTile, valueTile, column, kThreadColumns, sums),
             sums.begin());
  emitBarrier(b);
  return state;
}

// --- Results

/// What a row's sums are multiplied by: not finite where the weights are NaN.
/// Without keys there is nothing to sum.
Value AttentionEmitter::emitFactor(Value total) {
  for (int64_t mask = 1; mask < kSide; mask *= 2)
    total = b.create<arith::AddFOp>(total, emitShuffle(b, total, mask));
  Value isEmpty = b.equal(size(plan.keys), b.index(0));
  return select(isEmpty, none, b.create<arith::DivFOp>(constant(1), total));
}

void AttentionEmitter::store(ValueRange sums, ValueRange totals) {
  for (auto [r, total] : llvm::enumerate(totals)) {
    Value factor = emitFactor(total);
    Value rest = b.create<arith::SubFOp>(factor, factor);
    Value isNan =
        b.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, rest, rest);
    Values elements;
    for (Value sum : sums.slice(r * kThreadColumns, kThreadColumns)) {
      Value x = b.create<arith::MulFOp>(sum, factor);
      elements.push_back(plan.op.getGuard() ? select(isNan, none, x) : x);
    }
    Value i = b.add(firstRow, b.add(row, b.index(r)));
    b.when(b.less(i, size(plan.queries)), [&] {
      storeSums(b, frame, elements, b.add(firstColumn, column), plan.columns,
                [&](Value j) {
                  Values at(batch);
                  at.append({i, j});
                  return at;
                });
    });
  }
}

void AttentionEmitter::emit() {
  findTile();
  int64_t rows = plan.getThreadRows();
  Values state(rows, lowest);
  state.append(rows + rows * kThreadColumns, none);
  state = b.loop(b.index(0), size(plan.keys), b.index(plan.tileKeys), state,
                 [&](Value first, ValueRange carried) {
                   return emitKeys(first, carried);
                 });
  store(ArrayRef(state).drop_front(2 * rows),
        ArrayRef(state).slice(rows, rows));
}

FailureOr<LaunchPlan> planAttention(FusedOp region,
                                    ArrayRef<SymbolAttr> symbols) {
  auto op = cast<AttentionOpInterface>(codegen::getAnchor(region));
  if (takesTensorCores(op))
    return planTensorAttention(region, symbols);
  if (!isa<AttentionOp>(*op) || op->getNumResults() > 1)
    return op->emitOpError("has no kernel for such matrices");
  AttentionPlan plan(region, symbols);
  return LaunchPlan{getNumElements(plan.getBlockExtents(), region.getContext()),
                    kThreads};
}

LogicalResult emitAttention(KernelBuilder &b, DeviceFrame &frame) {
  Operation *op = codegen::getAnchor(frame.region);
  if (takesTensorCores(cast<AttentionOpInterface>(op)))
    return emitTensorAttention(b, frame);
  AttentionEmitter(b, frame).emit();
  return success();
}

} // namespace tcc::cuda
