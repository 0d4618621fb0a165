#include "compiler/codegen/cuda/kernels/TensorAttention.h"
#include "compiler/codegen/cuda/kernels/Product.h"
#include "compiler/codegen/cuda/kernels/RunningSoftmax.h"
#include "compiler/codegen/cuda/kernels/WarpProduct.h"
#include "compiler/codegen/region/Sums.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::cuda {

namespace {

/// Elements that a thread brings to shared memory at once.
constexpr int64_t kChunk = 8;
/// Threads that share a row of sums.
constexpr int64_t kSide = 4;
constexpr int64_t kTiles = kSteps / kFragmentColumns;

/// Sums of a thread in the product of its warp's rows with those of `matrix`.
int64_t countSums(const Matrix &matrix) {
  return matrix ? matrix.getPadded() / kFragmentColumns * 4 : 0;
}

/// Rows of a walked matrix in shared memory.
struct WalkedTile {
  Matrix matrix;
  Buffer elements, bits, words;
};

class TensorAttentionEmitter {
public:
  TensorAttentionEmitter(KernelBuilder &b, DeviceFrame &frame,
                         const TensorPlan &plan);
  /// For a tile of rows at the indices of the batch axes.
  void emit(ArrayRef<Value> batch, Value tile);
  /// For the indices that TensorPlan::getMaskBlocks counts.
  void emitMask(ArrayRef<Value> block);

private:
  using Values = SmallVector<Value>;
  using Sums = SmallVector<SumFragment>;

  KernelBuilder &b;
  DeviceFrame &frame;
  TensorPlan plan;
  Value lowest, none;  // -inf, 0
  Values batch;        // indices
  Value group, member; // of the warp's lanes: eight groups of four
  Value rows[2];       // of this thread's sums
  Value normalizers[2], shares[2];
  WalkedTile scoreTile, otherTile;

  Value size(AffineExpr expression) { return frame.size(b, expression); }
  Value constant(double value) {
    return b.create<arith::ConstantOp>(b.getF32FloatAttr(value));
  }
  Value select(Value condition, Value x, Value y) {
    return b.create<arith::SelectOp>(condition, x, y);
  }
  Value multiply(Value x, Value y) { return b.create<arith::MulFOp>(x, y); }
  Value isNan(Value x) {
    return b.create<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  }
  Value clamp(Value index, AffineExpr extent) {
    return b.min(index, b.sub(size(extent), b.index(1)));
  }
  Value isInside(Value step) { return b.less(step, size(plan.walked)); }
  bool wholeSteps() const { return plan.walked.isMultipleOf(kSteps); }

  void findRows(Value tile);
  std::pair<Value, Value> findSteps(Value tile);
  WalkedTile allocate(const Matrix &matrix);
  Value pull(Value tensor, Value i, Value j);
  Value pullPadded(const Matrix &matrix, Value i, Value j);
  SmallVector<RowFragment> loadOwn(const Matrix &matrix);
  void fill(const WalkedTile &tile, Value first);
  void fillChunk(const WalkedTile &tile, Value first, Value number);
  ColumnFragment readColumns(const WalkedTile &tile, int64_t lane,
                             int64_t step);
  ColumnFragment readSteps(const WalkedTile &tile, int64_t lane, int64_t step);
  Sums emitProducts(ArrayRef<RowFragment> own, const WalkedTile &tile);
  Value emitScore(Value product, Value own, Value walked);
  void emitRunning(Sums &scores, MutableArrayRef<Value> state, Value first);
  void emitWeights(Sums &scores, Sums &slopes, Value first);
  void emitWeight(Value &score, Value *slope, unsigned side, Value walked);
  void addProducts(const Sums &weights, const WalkedTile &tile,
                   MutableArrayRef<Value> sums);
  void loadNormalizers();
  Values emitScores(Value repeat, ArrayRef<Value> block, Value first,
                    ValueRange carried);
  Values emitStep(ArrayRef<RowFragment> scores, ArrayRef<RowFragment> slopes,
                  Value first, ValueRange carried);
  Value addSides(Value x);
  void store(ArrayRef<Value> state);
  void storeNormalizers(ArrayRef<Value> state, unsigned result);
  void storeRow(unsigned side, ArrayRef<Value> sums, Value first,
                AffineExpr columns, const Values &outer,
                llvm::function_ref<Value(Value)> finish);
  void storeSumsOf(unsigned side, Value factor, ArrayRef<Value> sums,
                   const Matrix &matrix, AttentionOperand part);
  bool makesAll() const;
};

} // namespace

TensorAttentionEmitter::TensorAttentionEmitter(KernelBuilder &b,
                                               DeviceFrame &frame,
                                               const TensorPlan &plan)
    : b(b), frame(frame), plan(plan), lowest(constant(-INFINITY)),
      none(constant(0)), scoreTile(allocate(plan.walkedScores)) {
  if (plan.walkedSlopes)
    otherTile = allocate(plan.walkedSlopes);
  else if (plan.byWeights)
    otherTile = allocate(plan.byWeights);
}

WalkedTile TensorAttentionEmitter::allocate(const Matrix &matrix) {
  Buffer elements =
      frame.allocateShared(b, plan.narrow, kSteps * matrix.getPitch());
  return {matrix, elements, Buffer(elements.getPointer(), b.getI16Type()),
          Buffer(elements.getPointer(), b.getI32Type())};
}

void TensorAttentionEmitter::findRows(Value tile) {
  Value first = b.mul(tile, b.index(plan.getRows()));
  Value lane = b.rem(frame.thread, b.index(kWarp));
  Value warp = b.div(frame.thread, b.index(kWarp));
  group = b.div(lane, b.index(kSide));
  member = b.rem(lane, b.index(kSide));
  first = b.add(first, b.mul(warp, b.index(kFragmentRows)));
  rows[0] = b.add(first, group);
  rows[1] = b.add(rows[0], b.index(kFragmentRows / 2));
}

/// Where a walk begins and ends. If it is causal a block with queries has no
/// use for keys behind all of them, one with keys for queries before.
std::pair<Value, Value> TensorAttentionEmitter::findSteps(Value tile) {
  Value begin = b.index(0), end = size(plan.walked);
  if (!plan.isCausal)
    return {begin, end};
  Value first = b.mul(tile, b.index(plan.getRows()));
  if (!plan.ownsKeys())
    return {begin, b.min(end, b.add(first, b.index(plan.getRows())))};
  Value step = b.index(kSteps);
  return {b.mul(b.div(first, step), step), end};
}

// --- Factors

Value TensorAttentionEmitter::pull(Value tensor, Value i, Value j) {
  Values at = codegen::alignBatch(b, tensor, plan.batch, batch);
  at.append({i, j});
  Value x = frame.elements.element(b, frame.loc, tensor, at);
  return b.widen(x, b.getF32Type(), /*isUnsigned=*/false);
}

/// Zeros follow the columns.
Value TensorAttentionEmitter::pullPadded(const Matrix &matrix, Value i,
                                         Value j) {
  if (getConstant(matrix.columns) == matrix.getPadded())
    return pull(matrix.tensor, i, j);
  Value x = pull(matrix.tensor, i, clamp(j, matrix.columns));
  return select(b.less(j, size(matrix.columns)), x, none);
}

/// This thread's part of its warp's rows. Rows outside are the last one.
SmallVector<RowFragment> TensorAttentionEmitter::loadOwn(const Matrix &matrix) {
  SmallVector<RowFragment> fragments;
  if (!matrix)
    return fragments;
  Value pair = b.mul(member, b.index(2));
  Value inside[2] = {clamp(rows[0], plan.own), clamp(rows[1], plan.own)};
  for (int64_t k = 0; k < matrix.getPadded(); k += kFragmentSteps) {
    RowFragment fragment;
    for (int64_t i = 0; i < 4; ++i) {
      Value j = b.add(pair, b.index(k + i / 2 * kFragmentSteps / 2));
      Value low = pullPadded(matrix, inside[i % 2], j);
      Value high = pullPadded(matrix, inside[i % 2], b.add(j, b.index(1)));
      fragment[i] = packExact(b, plan.narrow, low, high);
    }
    fragments.push_back(fragment);
  }
  return fragments;
}

void TensorAttentionEmitter::fillChunk(const WalkedTile &tile, Value first,
                                       Value number) {
  const Matrix &matrix = tile.matrix;
  Value chunks = b.index(matrix.getPadded() / kChunk);
  Value row = b.div(number, chunks);
  Value column = b.mul(b.rem(number, chunks), b.index(kChunk));
  Value step = b.add(first, row);
  Value from = wholeSteps() ? step : clamp(step, plan.walked);
  Values elements;
  for (int64_t i = 0; i < kChunk; ++i) {
    Value x = pullPadded(matrix, from, b.add(column, b.index(i)));
    elements.push_back(wholeSteps() ? x : select(isInside(step), x, none));
  }
  Value at = b.add(b.mul(row, b.index(matrix.getPitch())), column);
  for (auto [i, x] : llvm::enumerate(elements))
    tile.elements.store(b, frame.loc, x, b.add(at, b.index(i)));
}

/// Zeros follow the rows that there are.
void TensorAttentionEmitter::fill(const WalkedTile &tile, Value first) {
  int64_t count = kSteps * tile.matrix.getPadded() / kChunk;
  for (int64_t i = 0; i < count; i += plan.getThreads()) {
    Value number = b.add(frame.thread, b.index(i));
    auto fillOne = [&] { fillChunk(tile, first, number); };
    if (i + plan.getThreads() <= count)
      fillOne();
    else
      b.when(b.less(number, b.index(count)), fillOne);
  }
}

/// Rows [lane, lane + 8) of the tile, columns [step, step + 16).
ColumnFragment TensorAttentionEmitter::readColumns(const WalkedTile &tile,
                                                   int64_t lane, int64_t step) {
  int64_t pitch = tile.matrix.getPitch() / 2;
  Value place = b.add(b.mul(group, b.index(pitch)), member);
  auto read = [&](int64_t word) {
    Value at = b.add(place, b.index(lane * pitch + word));
    return tile.words.load(b, frame.loc, at);
  };
  return {read(step / 2), read((step + kFragmentSteps / 2) / 2)};
}

/// Columns [lane, lane + 8) of the tile, rows [step, step + 16).
ColumnFragment TensorAttentionEmitter::readSteps(const WalkedTile &tile,
                                                 int64_t lane, int64_t step) {
  int64_t pitch = tile.matrix.getPitch();
  Value place = b.add(b.mul(member, b.index(2 * pitch)), group);
  auto read = [&](int64_t row) {
    Value at = b.add(place, b.index((step + row) * pitch + lane));
    return tile.bits.load(b, frame.loc, at);
  };
  constexpr int64_t kHalf = kFragmentSteps / 2;
  return {packBits(b, read(0), read(1)),
          packBits(b, read(kHalf), read(kHalf + 1))};
}

/// Own rows times the walked ones of the tile, eight of these at a time.
SmallVector<SumFragment>
TensorAttentionEmitter::emitProducts(ArrayRef<RowFragment> own,
                                     const WalkedTile &tile) {
  Sums sums(kTiles, {none, none, none, none});
  for (auto [i, sum] : llvm::enumerate(sums))
    for (auto [k, fragment] : llvm::enumerate(own))
      sum = emitWarpProduct(
          b, plan.narrow, fragment,
          readColumns(tile, i * kFragmentColumns, k * kFragmentSteps), sum);
  return sums;
}

// --- Weights

Value TensorAttentionEmitter::emitScore(Value product, Value own,
                                        Value walked) {
  Value x = multiply(product, constant(plan.op.getScale().convertToDouble()));
  Value mask = plan.op.getMask();
  if (!mask)
    return x;
  if (plan.isCausal) {
    Value isHidden =
        plan.ownsKeys() ? b.less(walked, own) : b.less(own, walked);
    return select(isHidden, lowest, x);
  }
  own = clamp(own, plan.own);
  if (!wholeSteps())
    walked = clamp(walked, plan.walked);
  if (plan.ownsKeys())
    std::swap(own, walked);
  return b.create<arith::AddFOp>(x, pull(mask, own, walked));
}

/// `state` has the largest scores, the totals and the sums of two rows.
void TensorAttentionEmitter::emitRunning(Sums &scores,
                                         MutableArrayRef<Value> state,
                                         Value first) {
  Value column = b.add(first, b.mul(member, b.index(2)));
  for (auto [tile, sum] : llvm::enumerate(scores))
    for (auto [i, score] : llvm::enumerate(sum)) {
      Value walked = b.add(column, b.index(tile * kFragmentColumns + i % 2));
      score = emitScore(score, rows[i / 2], walked);
      if (!wholeSteps())
        score = select(isInside(walked), score, lowest);
    }
  for (unsigned side = 0; side < 2; ++side) {
    SmallVector<Value *> row;
    for (SumFragment &sum : scores)
      row.append({&sum[2 * side], &sum[2 * side + 1]});
    Value scale =
        emitRunningWeights(b, row, kSide, state[side], state[2 + side]);
    for (size_t i = 4 + 2 * side; i < state.size(); i += 4)
      for (size_t j = i; j < i + 2; ++j)
        state[j] = multiply(state[j], scale);
  }
}

/// In gradients, makes a score its weight, and its slope the score's gradient.
void TensorAttentionEmitter::emitWeight(Value &score, Value *slope,
                                        unsigned side, Value walked) {
  Value normalizer = normalizers[side], share = shares[side], zero = b.index(0);
  if (plan.ownsKeys()) {
    Value row = wholeSteps() ? walked : clamp(walked, plan.walked);
    normalizer = pull(plan.normalizer, row, zero);
    if (slope)
      share = pull(plan.share, row, zero);
  }
  auto clear = [&](Value x) {
    return wholeSteps() ? x : select(isInside(walked), x, none);
  };
  Value x = emitScore(score, rows[side], walked);
  x = b.create<math::ExpOp>(b.create<arith::SubFOp>(x, normalizer));
  if (plan.guard)
    x = select(isNan(x), none, x);
  score = clear(x);
  if (!slope)
    return;
  x = multiply(x, b.create<arith::SubFOp>(*slope, share));
  if (plan.goal != Goal::mask)
    x = multiply(x, constant(plan.op.getScale().convertToDouble()));
  *slope = clear(x);
}

void TensorAttentionEmitter::emitWeights(Sums &scores, Sums &slopes,
                                         Value first) {
  Value column = b.add(first, b.mul(member, b.index(2)));
  for (auto [tile, sum] : llvm::enumerate(scores))
    for (auto [i, score] : llvm::enumerate(sum)) {
      Value walked = b.add(column, b.index(tile * kFragmentColumns + i % 2));
      emitWeight(score, slopes.empty() ? nullptr : &slopes[tile][i], i / 2,
                 walked);
    }
}

// --- Steps

/// Adds the weights times the rows of the tile.
void TensorAttentionEmitter::addProducts(const Sums &weights,
                                         const WalkedTile &tile,
                                         MutableArrayRef<Value> sums) {
  for (int64_t k = 0; k < kTiles; k += 2) {
    const SumFragment &left = weights[k], &right = weights[k + 1];
    auto pack = [&](const SumFragment &sum, unsigned side) {
      return packRounded(b, plan.narrow, sum[2 * side], sum[2 * side + 1]);
    };
    RowFragment own = {pack(left, 0), pack(left, 1), pack(right, 0),
                       pack(right, 1)};
    for (size_t i = 0; i < sums.size(); i += 4) {
      SumFragment sum;
      llvm::copy(sums.slice(i, 4), sum.begin());
      sum = emitWarpProduct(
          b, plan.narrow, own,
          readSteps(tile, i / 4 * kFragmentColumns, k * kFragmentColumns), sum);
      llvm::copy(sum, sums.begin() + i);
    }
  }
}

/// Carried are, where they run, the largest scores and the totals of two rows;
/// then the sums of slopes times rows, and those of weights.
SmallVector<Value>
TensorAttentionEmitter::emitStep(ArrayRef<RowFragment> scoreRows,
                                 ArrayRef<RowFragment> slopeRows, Value first,
                                 ValueRange carried) {
  Values state(carried);
  fill(scoreTile, first);
  if (otherTile.matrix)
    fill(otherTile, first);
  emitBarrier(b);
  Sums scores = emitProducts(scoreRows, scoreTile), slopes;
  if (!slopeRows.empty())
    slopes = emitProducts(slopeRows, otherTile);
  if (plan.runs())
    emitRunning(scores, state, first);
  else
    emitWeights(scores, slopes, first);
  MutableArrayRef<Value> sums(state);
  size_t ofWeights = countSums(plan.byWeights);
  if (plan.bySlopes)
    addProducts(slopes, scoreTile, sums.drop_back(ofWeights));
  if (plan.byWeights)
    addProducts(scores, otherTile, sums.take_back(ofWeights));
  emitBarrier(b);
  return state;
}

/// The normalizers and shares of this thread's rows.
void TensorAttentionEmitter::loadNormalizers() {
  for (unsigned side = 0; side < 2; ++side) {
    Value row = clamp(rows[side], plan.own);
    normalizers[side] = pull(plan.normalizer, row, b.index(0));
    shares[side] = pull(plan.share, row, b.index(0));
  }
}

/// Adds the scores' gradients of the batch index that is number `repeat` of
/// those that read the mask of `block`.
auto TensorAttentionEmitter::emitScores(Value repeat, ArrayRef<Value> block,
                                        Value first, ValueRange carried)
    -> Values {
  batch = b.delinearize(repeat, frame.sizes(b, plan.getMaskRepeats()));
  Extents mask = getExtents(plan.op.getMask());
  for (auto [axis, index] : llvm::enumerate(batch))
    index = b.add(b.mul(index, size(mask[axis])), block[axis]);
  SmallVector<RowFragment> scoreRows = loadOwn(plan.ownScores);
  SmallVector<RowFragment> slopeRows = loadOwn(plan.ownSlopes);
  loadNormalizers();
  fill(scoreTile, first);
  fill(otherTile, first);
  emitBarrier(b);
  Sums scores = emitProducts(scoreRows, scoreTile);
  Sums slopes = emitProducts(slopeRows, otherTile);
  emitWeights(scores, slopes, first);
  emitBarrier(b);
  Values sums(carried);
  for (auto [tile, slope] : llvm::enumerate(slopes))
    for (auto [i, x] : llvm::enumerate(slope))
      sums[4 * tile + i] = b.create<arith::AddFOp>(sums[4 * tile + i], x);
  return sums;
}

// --- Results

Value TensorAttentionEmitter::addSides(Value x) {
  for (int64_t mask = 1; mask < kSide; mask *= 2)
    x = b.create<arith::AddFOp>(x, emitShuffle(b, x, mask));
  return x;
}

bool TensorAttentionEmitter::makesAll() const {
  auto op = dyn_cast<AttentionGradientOp>(*plan.op);
  return op && op.getOf() == AttentionOperand::all;
}

/// A row's sums of `part`, times what they have in common.
void TensorAttentionEmitter::storeSumsOf(unsigned side, Value factor,
                                         ArrayRef<Value> sums,
                                         const Matrix &matrix,
                                         AttentionOperand part) {
  bool isGuarded = factor && plan.guard;
  Value rest = isGuarded ? b.create<arith::SubFOp>(factor, factor) : Value();
  auto finish = [&](Value x) -> Value {
    if (factor)
      x = multiply(x, factor);
    return isGuarded ? select(isNan(rest), none, x) : x;
  };
  Values outer;
  if (makesAll())
    outer.push_back(b.index(int64_t(part)));
  llvm::append_range(outer, batch);
  storeRow(side, sums, b.index(0), matrix.columns, outer, finish);
}

/// What `finish` makes of a row's sums, from the column `first` on, at the
/// indices `outer` before those of the row and the column.
void TensorAttentionEmitter::storeRow(unsigned side, ArrayRef<Value> sums,
                                      Value first, AffineExpr columns,
                                      const Values &outer,
                                      llvm::function_ref<Value(Value)> finish) {
  auto at = [&](Value column) {
    Values indices(outer);
    indices.append({rows[side], column});
    return indices;
  };
  Value pair = b.add(first, b.mul(member, b.index(2)));
  b.when(b.less(rows[side], size(plan.own)), [&] {
    for (size_t i = 0; i < sums.size(); i += 4) {
      Value x = finish(sums[i + 2 * side]), y = finish(sums[i + 2 * side + 1]);
      Value column = b.add(pair, b.index(i / 4 * kFragmentColumns));
      storeSums(b, frame, {x, y}, column, columns, at);
    }
  });
}

void TensorAttentionEmitter::storeNormalizers(ArrayRef<Value> state,
                                              unsigned result) {
  for (unsigned side = 0; side < 2; ++side) {
    Value most = state[side], total = addSides(state[2 + side]);
    Value isEmpty =
        b.create<arith::CmpFOp>(arith::CmpFPredicate::OEQ, most, lowest);
    Value x = b.create<arith::AddFOp>(select(isEmpty, none, most),
                                      b.create<math::LogOp>(total));
    auto at = [&](Value column) {
      Values indices(batch);
      indices.append({rows[side], column});
      return indices;
    };
    // One of the threads of a row.
    AffineExpr one = getAffineConstantExpr(1, b.getContext());
    b.when(b.less(rows[side], size(plan.own)),
           [&] { storeSums(b, frame, x, member, one, at, result); });
  }
}

/// Without keys there is nothing to sum; a factor is not finite where the
/// weights are NaN.
void TensorAttentionEmitter::store(ArrayRef<Value> state) {
  if (plan.goal == Goal::normalizer)
    return storeNormalizers(state, 0);
  if (plan.op->getNumResults() > 1)
    storeNormalizers(state, 1);
  ArrayRef<Value> sums = state.drop_front(plan.runs() ? 4 : 0);
  size_t ofWeights = countSums(plan.byWeights);
  auto ofSlopes =
      plan.ownsKeys() ? AttentionOperand::key : AttentionOperand::query;
  for (unsigned side = 0; side < 2; ++side) {
    Value factor;
    if (plan.runs()) {
      Value total = addSides(state[2 + side]);
      Value isEmpty = b.equal(size(plan.walked), b.index(0));
      factor =
          select(isEmpty, none, b.create<arith::DivFOp>(constant(1), total));
    }
    if (plan.bySlopes)
      storeSumsOf(side, factor, sums.drop_back(ofWeights), plan.bySlopes,
                  ofSlopes);
    if (plan.byWeights)
      storeSumsOf(side, factor, sums.take_back(ofWeights), plan.byWeights,
                  AttentionOperand::value);
  }
}

void TensorAttentionEmitter::emit(ArrayRef<Value> batch, Value tile) {
  this->batch = llvm::to_vector(batch);
  // Blocks with much to walk over begin first.
  if (plan.isCausal && !plan.ownsKeys())
    tile = b.sub(b.sub(size(plan.countTiles()), b.index(1)), tile);
  findRows(tile);
  auto [begin, end] = findSteps(tile);
  SmallVector<RowFragment> scoreRows = loadOwn(plan.ownScores);
  SmallVector<RowFragment> slopeRows = loadOwn(plan.ownSlopes);
  if (plan.goal == Goal::query)
    loadNormalizers();
  Values state;
  if (plan.runs())
    state = {lowest, lowest, none, none};
  state.append(countSums(plan.bySlopes) + countSums(plan.byWeights), none);
  state = b.loop(begin, end, b.index(kSteps), state,
                 [&](Value first, ValueRange carried) {
                   return emitStep(scoreRows, slopeRows, first, carried);
                 });
  store(state);
}

/// Each sum is of the repeats that have its number modulo that of sums.
void TensorAttentionEmitter::emitMask(ArrayRef<Value> block) {
  size_t axes = plan.batch.size();
  findRows(block[axes + 1]);
  Value first = b.mul(block.back(), b.index(kSteps));
  Values outer = {block[axes]};
  llvm::append_range(outer, block.take_front(axes));
  Value end = size(getNumElements(plan.getMaskRepeats(), b.getContext()));
  Value step = size(getExtent(plan.op->getResult(0), 0));
  Values sums(4 * kTiles, none);
  sums = b.loop(block[axes], end, step, sums,
                [&](Value repeat, ValueRange carried) {
                  return emitScores(repeat, block, first, carried);
                });
  for (unsigned side = 0; side < 2; ++side)
    storeRow(side, sums, first, plan.walked, outer, [](Value x) { return x; });
}

/// Blocks with one goal follow those with another one of the same batch
/// indices: they read the same matrices. Each goes one way alone, so all ways
/// have the same shared memory.
LogicalResult emitTensorAttention(KernelBuilder &b, DeviceFrame &frame) {
  SmallVector<Goal> goals = getGoals(frame.region);
  TensorPlan first(frame.region, frame.symbols, goals.front());
  if (first.goal == Goal::mask) {
    auto block =
        b.delinearize(frame.block, frame.sizes(b, first.getMaskBlocks()));
    TensorAttentionEmitter(b, frame, first).emitMask(block);
    return success();
  }
  SmallVector<Value> sizes = frame.sizes(b, first.batch);
  if (goals.size() > 1)
    sizes.push_back(b.index(goals.size()));
  sizes.push_back(frame.size(b, first.countTiles()));
  SmallVector<Value> batch = b.delinearize(frame.block, sizes);
  Value tile = batch.pop_back_val();
  Value turn = goals.size() > 1 ? batch.pop_back_val() : b.index(0);
  int64_t shared = frame.sharedEnd;
  for (auto [i, goal] : llvm::enumerate(goals)) {
    TensorPlan plan(frame.region, frame.symbols, goal);
    frame.sharedEnd = shared;
    b.when(b.equal(turn, b.index(i)),
           [&] { TensorAttentionEmitter(b, frame, plan).emit(batch, tile); });
  }
  return success();
}

} // namespace tcc::cuda
