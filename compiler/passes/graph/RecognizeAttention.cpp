//===- RecognizeAttention.cpp - Attention that exporters wrote out --------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_RECOGNIZEATTENTIONPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// softmax(scores) along the last axis.
struct Weights {
  Value scores;
  bool guard = false; // rows of NaN are zeros
};

/// query key^T * scale + masks
struct Scores {
  MatmulOp product;
  double scale = 1;
  SmallVector<Value, 2>
      masks; // of the scores' extents, however many batch axes
};

} // namespace

static std::optional<Weights> matchWeights(Value value) {
  if (!hasOneLocalUse(value))
    return std::nullopt;
  Weights weights;
  auto select = value.getDefiningOp<SelectOp>();
  if (select) {
    value = select.getOnFalse();
    auto isNan = select.getCondition().getDefiningOp<IsNanOp>();
    weights.guard = isNan && isNan->hasOneUse() && isNan.getX() == value &&
                    isSplat(select.getOnTrue(), 0.0) &&
                    llvm::hasNItems(value.getUses(), 2);
  }
  auto softmax = value.getDefiningOp<SoftmaxOp>();
  if (!softmax || int64_t(softmax.getAxis()) + 1 != getRank(value) ||
      (select && !weights.guard))
    return std::nullopt;
  weights.scores = softmax.getX();
  return weights;
}

/// The other factor of `op`, a product with or quotient by a splat.
static std::optional<std::pair<Value, double>> matchScaled(Operation *op) {
  if (auto div = dyn_cast_or_null<DivOp>(op)) {
    std::optional<double> divisor = getSplat(div.getRhs());
    if (divisor && *divisor != 0)
      return std::pair(div.getLhs(), 1 / *divisor);
  }
  if (!isa_and_nonnull<MulOp>(op))
    return std::nullopt;
  auto sides =
      matchEither(op, [](Value side) { return getSplat(side).has_value(); });
  if (!sides)
    return std::nullopt;
  return std::pair(sides->second, *getSplat(sides->first));
}

/// True if `op` has the matrices of its operand under other batch axes.
static bool keepsMatrices(ReshapeOp op) {
  Extents from = getExtents(op.getX()), to = getExtents(op.getResult());
  return from.size() > 2 && to.size() > 2 &&
         llvm::equal(ArrayRef(from).take_back(2), ArrayRef(to).take_back(2),
                     isEqual);
}

static std::optional<Scores> matchScores(Value value) {
  Scores scores;
  while (hasOneLocalUse(value)) {
    Operation *op = value.getDefiningOp();
    if (auto product = dyn_cast_or_null<MatmulOp>(op)) {
      if (product.getPackedRhs())
        return std::nullopt;
      scores.product = product;
      return scores;
    }
    if (auto scaled = matchScaled(op)) {
      scores.scale *= scaled->second;
      value = scaled->first;
      continue;
    }
    if (auto reshape = dyn_cast_or_null<ReshapeOp>(op);
        reshape && keepsMatrices(reshape)) {
      value = reshape.getX();
      continue;
    }
    // Masks are added to the scaled product.
    auto add = dyn_cast_or_null<AddOp>(op);
    if (!add || scores.scale != 1)
      return std::nullopt;
    bool isLeft = matchScores(add.getLhs()).has_value();
    scores.masks.push_back(isLeft ? add.getRhs() : add.getLhs());
    value = isLeft ? add.getLhs() : add.getRhs();
  }
  return std::nullopt;
}

// --- Masks

/// `mask` with extent 1 where it is repeated along batch axes.
static Value dropRepeats(OpBuilder &builder, Value mask) {
  Extents full = getExtents(mask), extents = full;
  Value source = mask;
  while (auto broadcast = source.getDefiningOp<BroadcastOp>()) {
    source = broadcast.getX();
    Extents from = getExtents(source);
    AffineExpr one = builder.getAffineConstantExpr(1);
    from.insert(from.begin(), full.size() - from.size(), one);
    for (size_t axis = 0; axis + 2 < full.size(); ++axis)
      if (!isEqual(from[axis], full[axis]))
        extents[axis] = one;
  }
  auto type = makeTensorType(extents, getElementTypeOrSelf(mask));
  if (source == mask || type == mask.getType())
    return mask;
  return builder.createOrFold<BroadcastOp>(mask.getLoc(), type, source);
}

/// `mask`, which may be repeated along batch axes of scores of `from`, as one
/// of the same scores of the batch axes of `to`. Null if that would repeat it
/// otherwise than as a whole, along an axis of `to` of which it then is a part:
/// so `mayTile` allows, where the part is known.
static Value regroup(OpBuilder &builder, Value mask, const Extents &from,
                     const Extents &to, bool mayTile) {
  Extents own = getExtents(mask), extents;
  AffineExpr one = builder.getAffineConstantExpr(1);
  for (const AxisGroup &group : groupAxes(from, to)) {
    // Repeated axes, then whole ones.
    size_t whole = group.fromEnd;
    while (whole > group.fromBegin && isEqual(own[whole - 1], from[whole - 1]))
      --whole;
    bool repeats = whole > group.fromBegin;
    ArrayRef parts =
        ArrayRef(own).slice(group.fromBegin, group.fromEnd - group.fromBegin);
    AffineExpr part = getNumElements(parts, builder.getContext());
    std::optional<int64_t> known = getConstant(part);
    bool isOne = known == 1;
    if (repeats && !isOne &&
        (!mayTile || !known || *known <= 0 ||
         group.toEnd - group.toBegin != 1 ||
         !to[group.toBegin].isMultipleOf(*known) ||
         !isEqual(part,
                  getNumElements(parts.drop_front(whole - group.fromBegin),
                                 builder.getContext()))))
      return {};
    for (size_t axis : llvm::seq(group.toBegin, group.toEnd))
      extents.push_back(!repeats ? to[axis] : isOne ? one : part);
  }
  auto type = makeTensorType(extents, getElementTypeOrSelf(mask));
  return reshapeTo(builder, mask.getLoc(), mask, type);
}

/// `extents` or those of a mask, whichever has the most batch axes.
static Extents getFinest(const Extents &extents, ArrayRef<Value> masks) {
  Extents finest = extents;
  for (Value mask : masks)
    if (Extents own = getExtents(mask); own.size() > finest.size())
      finest = own;
  return finest;
}

/// `mask` for scores of extents `to`, repeated as far as regroup asks.
static Value regroupAny(OpBuilder &builder, Value mask, const Extents &from,
                        const Extents &to, bool mayTile) {
  if (Value regrouped = regroup(builder, mask, from, to, mayTile))
    return regrouped;
  auto type = makeTensorType(from, getElementTypeOrSelf(mask));
  Value whole = builder.create<BroadcastOp>(mask.getLoc(), type, mask);
  return regroup(builder, whole, from, to, mayTile);
}

/// The sum of `masks` for scores of extents `to`; null if there is none. Masks
/// are added where their repeats are axes of their own, if they are anywhere.
static Value addMasks(OpBuilder &builder, ArrayRef<Value> masks,
                      const Extents &to) {
  Extents finest =
      masks.size() == 1 ? getExtents(masks.front()) : getFinest(to, masks);
  Value sum;
  for (Value mask : masks) {
    Value x = regroupAny(builder, dropRepeats(builder, mask), getExtents(mask),
                         finest, /*mayTile=*/false);
    if (!sum) {
      sum = x;
      continue;
    }
    auto extents = broadcastExtents(getExtents(sum), getExtents(x));
    auto type = makeTensorType(*extents, getElementTypeOrSelf(x));
    Location loc = mask.getLoc();
    sum = builder.create<AddOp>(
        loc, builder.createOrFold<BroadcastOp>(loc, type, x),
        builder.createOrFold<BroadcastOp>(loc, type, sum));
  }
  return sum ? regroupAny(builder, sum, finest, to, /*mayTile=*/true) : sum;
}

// --- Operands

/// `x` without a factor that all its elements have, moved or not.
static Value dropScale(OpBuilder &builder, Value x, double &scale) {
  Operation *op = x.getDefiningOp();
  if (auto scaled = matchScaled(op)) {
    scale *= scaled->second;
    return dropScale(builder, scaled->first, scale);
  }
  if (!isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastOp>(op))
    return x;
  Value from = op->getOperand(0), without = dropScale(builder, from, scale);
  if (without == from)
    return x;
  Operation *moved = builder.clone(*op);
  moved->setOperand(0, without);
  return moved->getResult(0);
}

/// `x` with the last two axes swapped if `isTransposed`.
static Value transposeMatrix(OpBuilder &builder, Location loc, Value x,
                             bool isTransposed) {
  if (!isTransposed)
    return x;
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(0, getRank(x)));
  std::swap(permutation.back(), permutation[permutation.size() - 2]);
  return builder.create<TransposeOp>(loc, x, permutation);
}

static bool haveEqualBatch(ArrayRef<Value> tensors) {
  Extents first = getExtents(tensors[0]);
  return llvm::all_of(tensors, [&](Value tensor) {
    Extents extents = getExtents(tensor);
    return extents.size() == first.size() &&
           llvm::equal(ArrayRef(extents).drop_back(2),
                       ArrayRef(first).drop_back(2), isEqual);
  });
}

namespace {

/// softmax(query key^T * scale + mask) value
struct RecognizeAttention : OpRewritePattern<MatmulOp> {
  RecognizeAttention(MLIRContext *context, bool fitsTensorCores,
                     DecisionLog &log)
      : OpRewritePattern(context), fitsTensorCores(fitsTensorCores), log(log) {}

  LogicalResult matchAndRewrite(MatmulOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<Weights> weights;
    if (!op.getTransposeLhs() && !op.getPackedRhs() && isFloat(op.getResult()))
      weights = matchWeights(op.getLhs());
    if (!weights)
      return rewriter.notifyMatchFailure(op, "not of a softmax");
    std::optional<Scores> scores = matchScores(weights->scores);
    if (!scores)
      return rewriter.notifyMatchFailure(op, "the scores are no product");
    MatmulOp product = scores->product;
    if (!haveEqualBatch(
            {product.getLhs(), product.getRhs(), op.getRhs(), op.getResult()}))
      return rewriter.notifyMatchFailure(op, "operands differ in their batch");
    if (getElementTypeOrSelf(product.getLhs()) !=
        getElementTypeOrSelf(op.getResult()))
      return rewriter.notifyMatchFailure(op, "scores of another element type");
    if (fitsTensorCores &&
        !graph::fitsTensorCores(
            {product.getK(), getExtents(op.getResult()).back()}))
      return rewriter.notifyMatchFailure(op, "rows are too long");
    Extents extents = getExtents(op.getResult());
    extents.back() = getExtents(op.getLhs()).back();
    Value mask = addMasks(rewriter, scores->masks, extents);
    double scale = scores->scale;
    Value query = dropScale(rewriter, product.getLhs(), scale);
    query = transposeMatrix(rewriter, op.getLoc(), query,
                            product.getTransposeLhs());
    Value key = dropScale(rewriter, product.getRhs(), scale);
    key =
        transposeMatrix(rewriter, op.getLoc(), key, !product.getTransposeRhs());
    Value value = transposeMatrix(rewriter, op.getLoc(), op.getRhs(),
                                  op.getTransposeRhs());
    log.add(op, "recognised", AttentionOp::getOperationName());
    // Both products' nodes may be named by who wants them wide.
    auto attention = rewriter.create<AttentionOp>(
        rewriter.getFusedLoc({op.getLoc(), product.getLoc()}), op.getType(),
        /*normalizer=*/Type(), query, key, value, mask,
        rewriter.getF64FloatAttr(scale),
        weights->guard ? rewriter.getUnitAttr() : UnitAttr());
    rewriter.replaceOp(op, attention);
    return success();
  }

  bool fitsTensorCores;
  DecisionLog &log;
};

struct RecognizeAttentionPass
    : impl::RecognizeAttentionPassBase<RecognizeAttentionPass> {
  using RecognizeAttentionPassBase::RecognizeAttentionPassBase;

  void runOnOperation() override {
    DecisionLog log(getOperation(), "recognize-attention");
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeAttention>(&getContext(), fitsTensorCores, log);
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace tcc
