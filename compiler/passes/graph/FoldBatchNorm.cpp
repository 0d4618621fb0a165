//===- FoldBatchNorm.cpp - Scale filters instead of activations -----------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/match/Matchers.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_FOLDBATCHNORMPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// True if `value` depends on weights alone and repeats a vector, one element
/// for each index of `axis`.
bool isChannelVector(Value value, int64_t axis) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || !isParameter(value))
    return false;
  Extents extents = getExtents(broadcast.getX());
  int64_t missing = getRank(value) - int64_t(extents.size());
  if (axis < missing ||
      !isEqual(extents[axis - missing], getExtent(value, axis)))
    return false;
  extents.erase(extents.begin() + (axis - missing));
  return llvm::all_of(extents,
                      [](AffineExpr e) { return getConstant(e) == 1; });
}

/// The vector [channels] that `value` repeats.
Value getChannelVector(Value value, int64_t axis, OpBuilder &builder) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  Type elementType = getTensorType(value).getElementType();
  return reshapeTo(builder, value.getLoc(), broadcast.getX(),
                   makeTensorType(getExtent(value, axis), elementType));
}

/// `vector` along `axis` of a tensor of type `type`.
Value placeAlong(OpBuilder &builder, Location loc, Value vector, int64_t axis,
                 RankedTensorType type) {
  Extents extents(type.getRank() - axis, builder.getAffineConstantExpr(1));
  extents[0] = getExtent(vector, 0);
  Value column = reshapeTo(builder, loc, vector,
                           makeTensorType(extents, type.getElementType()));
  return builder.create<BroadcastOp>(loc, type, column);
}

/// A contraction with a weight: its channel axis in the result and where the
/// channels are in the weight.
struct Producer {
  Operation *op;
  unsigned weight;    // operand number
  int64_t axis;       // of the result
  int64_t weightAxis; // of the weight
};

/// An axis of the result and one of operand `weight` that a loop of their own
/// indexes alone: the last ones of the result. An element of the result there
/// depends on elements of the weight there alone.
std::optional<Producer> matchAxes(IterationOpInterface op, unsigned weight) {
  AffineMap from = op.getOperandMap(weight), to = op.getResultMap(0);
  if (!from || !to)
    return std::nullopt;
  for (int64_t axis = to.getNumResults(); axis-- > 0;)
    for (auto [weightAxis, index] : llvm::enumerate(from.getResults()))
      if (isa<AffineDimExpr>(index) && index == to.getResult(axis))
        return Producer{op, weight, axis, int64_t(weightAxis)};
  return std::nullopt;
}

/// The contraction that makes `value`, for its one use in the same block.
std::optional<Producer> getProducer(Value value) {
  constexpr unsigned kWeight = 1;
  Operation *op = hasOneLocalUse(value) ? value.getDefiningOp() : nullptr;
  auto slots = dyn_cast_if_present<ParameterSlotOpInterface>(op);
  auto iteration = dyn_cast_if_present<IterationOpInterface>(op);
  if (!slots || !iteration || op->getNumResults() != 1 ||
      op->getNumOperands() <= kWeight ||
      slots.getParameterSlot(kWeight) != ParameterSlot::matrix ||
      !isParameter(op->getOperand(kWeight)))
    return std::nullopt;
  return matchAxes(iteration, kWeight);
}

/// More additions after a contraction are no biases.
constexpr int kMaxBiases = 4;

/// The contraction under `value`, past additions of biases.
std::optional<Producer> findProducer(Value value) {
  for (int i = 0; i < kMaxBiases; ++i) {
    auto add = getSingleUse<AddOp>(value);
    if (!add)
      break;
    auto sides =
        matchEither(add, [](Value operand) { return isParameter(operand); });
    if (!sides)
      return std::nullopt;
    value = sides->second;
  }
  return getProducer(value);
}

/// conv(x, w) * a = conv(x, w * a)
struct ScaleWeight : OpRewritePattern<MulOp> {
  ScaleWeight(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern(context), log(log) {}

  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    auto sides = matchEither(
        op, [](Value operand) { return getProducer(operand).has_value(); });
    if (!sides)
      return rewriter.notifyMatchFailure(op, "no operand is a contraction");
    Producer producer = *getProducer(sides->first);
    if (!isChannelVector(sides->second, producer.axis))
      return rewriter.notifyMatchFailure(op, "no factor per channel");
    Value weight = producer.op->getOperand(producer.weight);
    if (!isFloat(weight) ||
        getElementTypeOrSelf(weight) != getElementTypeOrSelf(op.getType()))
      return rewriter.notifyMatchFailure(op, "the weight has another type");
    Value scale = getChannelVector(sides->second, producer.axis, rewriter);
    Value factor = placeAlong(rewriter, op.getLoc(), scale, producer.weightAxis,
                              getTensorType(weight));
    Value scaled = rewriter.create<MulOp>(op.getLoc(), weight, factor);
    // At the place of the product, where the factor is known.
    Operation *contraction = rewriter.clone(*producer.op);
    contraction->setOperand(producer.weight, scaled);
    log.add(contraction, "folded", "a factor per channel goes into the weight",
            {{"weight_bytes", double(getBytes(getTensorType(weight)))}});
    rewriter.replaceOp(op, contraction);
    return success();
  }

  DecisionLog &log;
};

/// (y + b) * a = y * a + b * a, where y is a contraction
struct DistributeOverBias : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    auto sides = matchEither(op, [](Value operand) {
      return getSingleUse<AddOp>(operand) && findProducer(operand);
    });
    if (!sides)
      return rewriter.notifyMatchFailure(op, "not of a contraction with bias");
    auto add = sides->first.getDefiningOp<AddOp>();
    int64_t axis = findProducer(sides->first)->axis;
    auto terms = matchEither(
        add, [&](Value operand) { return isChannelVector(operand, axis); });
    if (!terms || !isChannelVector(sides->second, axis))
      return rewriter.notifyMatchFailure(op, "not one value per channel");
    Value scale = getChannelVector(sides->second, axis, rewriter);
    Value bias = getChannelVector(terms->first, axis, rewriter);
    Value scaled = rewriter.create<MulOp>(op.getLoc(), bias, scale);
    Value product =
        rewriter.create<MulOp>(op.getLoc(), terms->second, sides->second);
    rewriter.replaceOpWithNewOp<AddOp>(
        op, product,
        placeAlong(rewriter, op.getLoc(), scaled, axis,
                   getTensorType(op.getResult())));
    return success();
  }
};

/// (y + a) + b = y + (a + b), where y is a contraction
struct MergeBiases : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    auto sides = matchEither(op, [](Value operand) {
      return getSingleUse<AddOp>(operand) && findProducer(operand);
    });
    if (!sides)
      return rewriter.notifyMatchFailure(op, "not of a contraction with bias");
    auto inner = sides->first.getDefiningOp<AddOp>();
    int64_t axis = findProducer(sides->first)->axis;
    auto terms = matchEither(
        inner, [&](Value operand) { return isChannelVector(operand, axis); });
    if (!terms || !isChannelVector(sides->second, axis))
      return rewriter.notifyMatchFailure(op, "not one value per channel");
    Value a = getChannelVector(terms->first, axis, rewriter);
    Value b = getChannelVector(sides->second, axis, rewriter);
    Value sum = rewriter.create<AddOp>(op.getLoc(), a, b);
    rewriter.replaceOpWithNewOp<AddOp>(
        op, terms->second,
        placeAlong(rewriter, op.getLoc(), sum, axis,
                   getTensorType(op.getResult())));
    return success();
  }
};

// --- Factors and terms behind other ops ---

/// What `value` repeats, if it repeats weights.
Value getRepeatedWeights(Value value) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  bool isOfWeights =
      broadcast && isFloat(value) && !getSplat(value) && isParameter(value);
  return isOfWeights ? broadcast.getX() : Value();
}

/// Op(a, b), of repeated weights, on the elements that one of them has; null if
/// neither has as many as both together.
template <typename Op>
Value combineWeights(OpBuilder &builder, Location loc, Value a, Value b) {
  Value x = getRepeatedWeights(a), y = getRepeatedWeights(b);
  auto extents = broadcastExtents(getExtents(x), getExtents(y));
  auto hasAll = [&](Value weights) {
    return isEqual(getNumElements(getExtents(weights), builder.getContext()),
                   getNumElements(*extents, builder.getContext()));
  };
  if (!extents || (!hasAll(x) && !hasAll(y)))
    return {};
  auto repeat = [&](Value weights) -> Value {
    Type type = makeTensorType(*extents, getElementTypeOrSelf(weights));
    return builder.createOrFold<BroadcastOp>(loc, type, weights);
  };
  Value both = builder.create<Op>(loc, repeat(x), repeat(y));
  return builder.create<BroadcastOp>(loc, a.getType(), both);
}

/// A value and what weights are added to it, or multiplied with it.
using WithWeights = std::pair<Value, Value>;

template <typename Op>
std::optional<WithWeights> matchWithWeights(Value value) {
  auto op = getSingleUse<Op>(value);
  auto sides =
      op ? matchEither(
               op, [](Value side) { return bool(getRepeatedWeights(side)); })
         : std::nullopt;
  if (!sides)
    return std::nullopt;
  return WithWeights(sides->second, sides->first);
}

/// The side of `op` that is an Inner with weights, and the weights that are the
/// other side.
template <typename Op, typename Inner>
std::optional<std::pair<WithWeights, Value>> matchAround(Op op) {
  for (auto [inner, weights] : {std::pair(op.getLhs(), op.getRhs()),
                                std::pair(op.getRhs(), op.getLhs())})
    if (auto found = matchWithWeights<Inner>(inner);
        found && getRepeatedWeights(weights))
      return std::pair(*found, Value(weights));
  return std::nullopt;
}

/// f(f(x, a), b) = f(x, f(a, b)) for products and sums with weights.
template <typename Op> struct MergeWeights : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto found = matchAround<Op, Op>(op);
    if (!found)
      return rewriter.notifyMatchFailure(op, "weights do not join twice");
    auto [inner, weights] = *found;
    Value both =
        combineWeights<Op>(rewriter, op.getLoc(), inner.second, weights);
    if (!both)
      return rewriter.notifyMatchFailure(op, "they have other axes");
    rewriter.replaceOpWithNewOp<Op>(op, inner.first, both);
    return success();
  }
};

/// (x * a + b) * c = x * a * c + b * c with weights a, b and c.
struct DistributeOverWeights : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    auto found = matchAround<MulOp, AddOp>(op);
    if (!found || !matchWithWeights<MulOp>(found->first.first))
      return rewriter.notifyMatchFailure(op, "not of a factor and a term");
    auto [inner, weights] = *found;
    Value term =
        combineWeights<MulOp>(rewriter, op.getLoc(), inner.second, weights);
    if (!term)
      return rewriter.notifyMatchFailure(op, "they have other axes");
    Value product = rewriter.create<MulOp>(op.getLoc(), inner.first, weights);
    rewriter.replaceOpWithNewOp<AddOp>(op, product, term);
    return success();
  }
};

struct FoldBatchNormPass : impl::FoldBatchNormPassBase<FoldBatchNormPass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "fold-batch-norm");
    if (failed(decomposeAll(log)))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<ScaleWeight>(&getContext(), log);
    patterns.add<DistributeOverBias, MergeBiases, MergeWeights<MulOp>,
                 MergeWeights<AddOp>, DistributeOverWeights>(&getContext());
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }

  /// Batch norms as a factor and a term per channel.
  LogicalResult decomposeAll(DecisionLog &log) {
    SmallVector<BatchNormOp> ops;
    getOperation().walk([&](BatchNormOp op) { ops.push_back(op); });
    for (BatchNormOp op : ops) {
      if (!findProducer(op.getX()))
        log.add(op, "kept",
                "no contraction with weights before it, or its "
                "result is read elsewhere too");
      OpBuilder builder(op);
      auto results = op.decompose(builder);
      if (failed(results))
        return op.emitOpError("cannot be decomposed");
      op.getResult().replaceAllUsesWith(results->front());
      op.erase();
    }
    return success();
  }
};

} // namespace
} // namespace tcc
