//===- RecognizeNorms.cpp - Layer and rms norms that exporters wrote out --===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/Rows.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numeric>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_RECOGNIZENORMSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// mean(of^2) + epsilon, whose root divides `of`.
struct Variance {
  Value of;
  SmallVector<int64_t> axes;
  double epsilon;
};

/// `value`: mean(of * of) + epsilon, reduced.
std::optional<Variance> matchVariance(Value value) {
  if (!value)
    return std::nullopt;
  auto add = lookThroughUnitReshapes(value).getDefiningOp<AddOp>();
  auto sides = add ? matchEither(add,
                                 [](Value v) {
                                   std::optional<double> splat = getSplat(v);
                                   return splat && *splat > 0.0;
                                 })
                   : std::nullopt;
  auto mean = sides ? matchReduction(sides->second) : std::nullopt;
  if (!mean || !mean->isMean())
    return std::nullopt;
  auto square = mean->reduce.getX().getDefiningOp<MulOp>();
  if (!square || square.getLhs() != square.getRhs())
    return std::nullopt;
  return Variance{square.getLhs(), SmallVector<int64_t>(mean->reduce.getAxes()),
                  *getSplat(sides->first)};
}

/// sqrt(variance), 1 / sqrt(variance): what a value is divided by, reduced.
Value matchRoot(Value value, bool isReciprocal) {
  if (!value)
    return {};
  value = lookThroughUnitReshapes(value);
  if (isReciprocal) {
    if (auto root = value.getDefiningOp<RsqrtOp>())
      return root.getX();
    if (auto inverse = value.getDefiningOp<ReciprocalOp>())
      return matchRoot(inverse.getX(), false);
    auto quotient = value.getDefiningOp<DivOp>();
    if (quotient && isSplat(quotient.getLhs(), 1.0))
      return matchRoot(quotient.getRhs(), false);
    return {};
  }
  auto root = value.getDefiningOp<SqrtOp>();
  return root ? root.getX() : Value();
}

/// True if `axes` are the last ones of x, up to its rank.
bool areTrailing(ArrayRef<int64_t> axes, Value x) {
  int64_t first = getRank(x) - int64_t(axes.size());
  return !axes.empty() && axes.front() == first &&
         axes.back() == getRank(x) - 1;
}

/// x of x - mean(x) along `axes`.
Value matchCentered(Value value, ArrayRef<int64_t> axes) {
  auto sub = value.getDefiningOp<SubOp>();
  auto mean = sub ? matchRow(sub.getRhs()) : std::nullopt;
  bool isMean = mean && mean->isMean() && mean->isSumOf(sub.getLhs()) &&
                mean->reduce.getAxes() == axes;
  return isMean ? sub.getLhs() : Value();
}

/// x / sqrt(mean(x^2) + epsilon) = layer_norm of what x is centered from, else
/// rms_norm(x)
LogicalResult replaceNorm(Operation *op, Value x, Value row, bool isReciprocal,
                          PatternRewriter &rewriter, DecisionLog &log) {
  auto broadcast = row.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return rewriter.notifyMatchFailure(op, "not with a value for each row");
  auto variance = matchVariance(matchRoot(broadcast.getX(), isReciprocal));
  if (!variance || variance->of != x)
    return rewriter.notifyMatchFailure(op, "not by the root of a mean square");
  if (!areTrailing(variance->axes, x) || !getRepeated(row, variance->axes))
    return rewriter.notifyMatchFailure(op, "not over the last axes");
  IntegerAttr axis = rewriter.getI64IntegerAttr(variance->axes.front());
  FloatAttr epsilon = rewriter.getF64FloatAttr(variance->epsilon);
  if (Value source = matchCentered(x, variance->axes)) {
    log.add(op, "recognised", LayerNormOp::getOperationName());
    rewriter.replaceOpWithNewOp<LayerNormOp>(op, source.getType(), source,
                                             Value(), Value(), axis, epsilon);
    return success();
  }
  log.add(op, "recognised", RmsNormOp::getOperationName());
  rewriter.replaceOpWithNewOp<RmsNormOp>(op, x.getType(), x, Value(), axis,
                                         epsilon);
  return success();
}

struct RecognizeQuotient : OpRewritePattern<DivOp> {
  RecognizeQuotient(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern(context), log(log) {}
  LogicalResult matchAndRewrite(DivOp op,
                                PatternRewriter &rewriter) const override {
    return replaceNorm(op, op.getLhs(), op.getRhs(), /*isReciprocal=*/false,
                       rewriter, log);
  }
  DecisionLog &log;
};

struct RecognizeProduct : OpRewritePattern<MulOp> {
  RecognizeProduct(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern(context), log(log) {}
  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    auto sides = matchEither(op, [](Value operand) {
      auto broadcast = operand.getDefiningOp<BroadcastOp>();
      return broadcast && matchRoot(broadcast.getX(), /*isReciprocal=*/true);
    });
    if (!sides)
      return rewriter.notifyMatchFailure(op, "no factor is an inverse root");
    return replaceNorm(op, sides->second, sides->first, /*isReciprocal=*/true,
                       rewriter, log);
  }
  DecisionLog &log;
};

// --- Scale and shift ---------------------------------------------------------

/// The tensor of x's axes [axis, rank) that `value` repeats, if it does.
Value matchParameter(Value value, int64_t axis) {
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast)
    return {};
  Extents expected = getExtents(value);
  bool fits = ArrayRef(getExtents(broadcast.getX())) ==
              ArrayRef(expected).drop_front(axis);
  return fits ? broadcast.getX() : Value();
}

/// norm(x) * scale = norm(x, scale)
template <typename Norm> struct AbsorbScale : OpRewritePattern<MulOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(MulOp op,
                                PatternRewriter &rewriter) const override {
    auto sides = matchEither(
        op, [](Value operand) { return bool(getSingleUse<Norm>(operand)); });
    auto norm = sides ? sides->first.template getDefiningOp<Norm>() : Norm();
    if (!norm || norm.getScale() || norm->getNumOperands() != 1)
      return rewriter.notifyMatchFailure(op, "not of a norm without scale");
    Value scale = matchParameter(sides->second, norm.getAxis());
    if (!scale)
      return rewriter.notifyMatchFailure(op, "not a scale of its axes");
    rewriter.setInsertionPoint(op);
    auto scaled = cast<Norm>(rewriter.clone(*norm));
    scaled.getScaleMutable().assign(scale);
    rewriter.replaceOp(op, scaled);
    return success();
  }
};

/// layer_norm(x) + shift = layer_norm(x, shift)
struct AbsorbShift : OpRewritePattern<AddOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AddOp op,
                                PatternRewriter &rewriter) const override {
    auto sides = matchEither(op, [](Value operand) {
      return bool(getSingleUse<LayerNormOp>(operand));
    });
    auto norm =
        sides ? sides->first.getDefiningOp<LayerNormOp>() : LayerNormOp();
    if (!norm || norm.getShift())
      return rewriter.notifyMatchFailure(op, "not of a norm without shift");
    Value shift = matchParameter(sides->second, norm.getAxis());
    if (!shift)
      return rewriter.notifyMatchFailure(op, "not a shift of its axes");
    auto shifted = cast<LayerNormOp>(rewriter.clone(*norm));
    shifted.getShiftMutable().assign(shift);
    rewriter.replaceOp(op, shifted);
    return success();
  }
};

// --- Merged axes -------------------------------------------------------------

/// `to`, of which the axes from `axis` on are merged from some of `from`, with
/// these as they are in `from`: of the first one only the part that is merged.
/// Nothing if that adds no axes, or cannot be told.
std::optional<Extents> splitMergedAxes(ArrayRef<AffineExpr> from,
                                       ArrayRef<AffineExpr> to, size_t axis) {
  Extents shape(to.take_front(axis));
  size_t first = 0;
  while (first < std::min(axis, from.size()) &&
         tcc::graph::isEqual(from[first], to[first]))
    ++first;
  int64_t kept = 1; // elements of the other axes in front
  for (AffineExpr extent : to.slice(first, axis - first)) {
    kept *= getConstant(extent).value_or(0);
    if (kept == 0)
      return std::nullopt;
  }
  for (; first < from.size() && kept > 1; ++first) {
    int64_t extent = getConstant(from[first]).value_or(0);
    int64_t part = std::gcd(kept, extent);
    kept /= part;
    if (extent == 0 || (part < extent && kept > 1))
      return std::nullopt;
    if (part < extent)
      shape.push_back(from[first].floorDiv(part));
  }
  llvm::append_range(shape, from.drop_front(first));
  if (shape.size() <= to.size())
    return std::nullopt;
  return shape;
}

/// layer_norm(reshape(x)) where the reshape merges axes, as exporters of group
/// norms do: layer_norm over the axes themselves, which channels-last can move.
struct SplitMergedAxes : OpRewritePattern<LayerNormOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LayerNormOp op,
                                PatternRewriter &rewriter) const override {
    auto reshape = op.getX().getDefiningOp<ReshapeOp>();
    if (!reshape)
      return rewriter.notifyMatchFailure(op, "not of a reshape");
    Extents merged = getExtents(op.getX());
    int64_t axis = op.getAxis();
    auto extents = splitMergedAxes(getExtents(reshape.getX()), merged, axis);
    if (!extents)
      return rewriter.notifyMatchFailure(op, "no axes are merged");
    auto reshapeAs = [&](Value x, ArrayRef<AffineExpr> extents) -> Value {
      return x ? reshapeTo(rewriter, op.getLoc(), x,
                           makeTensorType(extents, getElementTypeOrSelf(x)))
               : Value();
    };
    ArrayRef<AffineExpr> row = ArrayRef(*extents).drop_front(axis);
    Value x = reshapeAs(reshape.getX(), *extents);
    Value norm = rewriter.create<LayerNormOp>(
        op.getLoc(), x.getType(), x, reshapeAs(op.getScale(), row),
        reshapeAs(op.getShift(), row), op.getAxisAttr(), op.getEpsilonAttr());
    rewriter.replaceOp(op, reshapeAs(norm, merged));
    return success();
  }
};

/// Whether `x` is a layer norm, or pointwise of one and of what is repeated.
bool isOfNorm(Value x) {
  for (Operation *op = x.getDefiningOp(); op; op = x.getDefiningOp()) {
    if (isa<LayerNormOp>(op))
      return true;
    if (!isa<PointwiseOpInterface>(op))
      return false;
    auto made = llvm::find_if(op->getOperands(), [](Value operand) {
      return !operand.getDefiningOp<BroadcastOp>();
    });
    if (made == op->operand_end())
      return false;
    x = *made;
  }
  return false;
}

/// The extents of what a tensor of `repeated` in a shape is, repeated there,
/// before axes are regrouped as `groups` say: each group is repeated, or is
/// not.
std::optional<Extents> regroup(ArrayRef<AffineExpr> repeated,
                               ArrayRef<AffineExpr> shape,
                               ArrayRef<AffineExpr> before,
                               ArrayRef<AxisGroup> groups) {
  auto one = getAffineConstantExpr(1, before.front().getContext());
  Extents aligned(shape.size() - repeated.size(), one), extents;
  llvm::append_range(aligned, repeated);
  for (const AxisGroup &group : groups) {
    auto axes = llvm::seq(group.toBegin, group.toEnd);
    bool isRepeated = llvm::all_of(
        axes, [&](size_t axis) { return getConstant(aligned[axis]) == 1; });
    bool isWhole = llvm::all_of(axes, [&](size_t axis) {
      return tcc::graph::isEqual(aligned[axis], shape[axis]);
    });
    if (!isRepeated && !isWhole)
      return std::nullopt;
    for (size_t axis = group.fromBegin; axis < group.fromEnd; ++axis)
      extents.push_back(isWhole ? before[axis] : one);
  }
  return extents;
}

/// f(reshape(x), repeated) = reshape(f(x, repeated)) where x comes from a norm:
/// the scale and the shift of each group, then of each channel, between which
/// exporters merge other axes.
struct PointwiseBeforeMerging : RewritePattern {
  explicit PointwiseBeforeMerging(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<PointwiseOpInterface>(op))
      return failure();
    auto moved = llvm::find_if(op->getOperands(), [](Value operand) {
      return bool(getSingleUse<ReshapeOp>(operand));
    });
    if (moved == op->operand_end())
      return rewriter.notifyMatchFailure(op, "not of a reshape");
    Value x = *moved;
    while (auto reshape = getSingleUse<ReshapeOp>(x))
      x = reshape.getX();
    if (!isOfNorm(x))
      return rewriter.notifyMatchFailure(op, "not of a norm");
    Extents before = getExtents(x), shape = getExtents(*moved);
    SmallVector<AxisGroup> groups = groupAxes(before, shape);
    SmallVector<Extents> repeated;
    for (Value operand : op->getOperands()) {
      auto broadcast = operand.getDefiningOp<BroadcastOp>();
      if (operand == *moved) {
        repeated.emplace_back();
        continue;
      }
      auto extents = broadcast ? regroup(getExtents(broadcast.getX()), shape,
                                         before, groups)
                               : std::nullopt;
      if (!extents)
        return rewriter.notifyMatchFailure(op, "of a tensor with other axes");
      repeated.push_back(*extents);
    }
    SmallVector<Value> operands;
    for (auto [operand, extents] : llvm::zip_equal(op->getOperands(), repeated))
      operands.push_back(
          operand == *moved ? x : repeat(rewriter, operand, extents, before));
    OperationState state(
        op->getLoc(), op->getName(), operands,
        {makeTensorType(before, getElementTypeOrSelf(op->getResult(0)))},
        op->getAttrs());
    Value result = rewriter.create(state)->getResult(0);
    rewriter.replaceOpWithNewOp<ReshapeOp>(op, op->getResult(0).getType(),
                                           result);
    return success();
  }

private:
  /// What `operand` repeats, as `extents`, repeated to `shape`.
  static Value repeat(PatternRewriter &rewriter, Value operand,
                      ArrayRef<AffineExpr> extents,
                      ArrayRef<AffineExpr> shape) {
    Value from = operand.getDefiningOp<BroadcastOp>().getX();
    Type type = getElementTypeOrSelf(from);
    Location loc = operand.getLoc();
    from = reshapeTo(rewriter, loc, from, makeTensorType(extents, type));
    return rewriter.create<BroadcastOp>(loc, makeTensorType(shape, type), from);
  }
};

struct RecognizeNormsPass : impl::RecognizeNormsPassBase<RecognizeNormsPass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "recognize-norms");
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeQuotient, RecognizeProduct>(&getContext(), log);
    patterns.add<AbsorbScale<LayerNormOp>, AbsorbScale<RmsNormOp>, AbsorbShift>(
        &getContext());
    // Scales and shifts go into norms of merged axes first.
    RewritePatternSet merged(&getContext());
    merged.add<SplitMergedAxes, PointwiseBeforeMerging>(&getContext());
    for (RewritePatternSet *set : {&patterns, &merged})
      if (failed(applyPatternsAndFoldGreedily(getOperation(), std::move(*set))))
        return signalPassFailure();
  }
};

} // namespace
} // namespace tcc
