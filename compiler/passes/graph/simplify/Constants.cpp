#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"
#include "dialects/graph/evaluate/Evaluator.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// A constant of equal elements = broadcast of a scalar, which a kernel reads
/// as an immediate.
struct ShrinkSplat : OpRewritePattern<ConstantOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ConstantOp op,
                                PatternRewriter &rewriter) const override {
    auto value = dyn_cast<DenseElementsAttr>(op.getValue());
    RankedTensorType type = getTensorType(op.getResult());
    if (!value || !value.isSplat() || type.getNumElements() < 2)
      return rewriter.notifyMatchFailure(op, "not several equal elements");
    auto scalarType = RankedTensorType::get({}, type.getElementType());
    Value scalar = rewriter.create<ConstantOp>(
        op.getLoc(), scalarType,
        DenseElementsAttr::get(scalarType, value.getSplatValue<Attribute>()));
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, type, scalar);
    return success();
  }
};

/// The scalar constant that `tensor` repeats, null if it is none.
Value getScalar(Value tensor) {
  auto broadcast = tensor.getDefiningOp<BroadcastOp>();
  auto constant =
      (broadcast ? broadcast.getX() : tensor).getDefiningOp<ConstantOp>();
  if (constant && getTensorType(constant.getResult()).getNumElements() == 1)
    return constant;
  return {};
}

/// reshape, transpose, slice of a splat = the splat in another shape
template <typename Op> struct MoveSplat : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto broadcast = op.getX().template getDefiningOp<BroadcastOp>();
    if (!broadcast || getRank(broadcast.getX()) != 0)
      return rewriter.notifyMatchFailure(op, "operand is not a splat");
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, op.getType(),
                                             broadcast.getX());
    return success();
  }
};

/// f(splat, splat) = splat of f; one element is evaluated as it is: a reshape
/// to a scalar and back would only change places with f for ever.
struct EvaluateSplats : RewritePattern {
  explicit EvaluateSplats(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (!isa<PointwiseOpInterface>(op) || op->getNumResults() != 1)
      return failure();
    RankedTensorType type = getTensorType(op->getResult(0));
    if (type.hasStaticShape() && type.getNumElements() == 1)
      return rewriter.notifyMatchFailure(op, "has one element already");
    SmallVector<Value> scalars;
    for (Value operand : op->getOperands()) {
      scalars.push_back(getScalar(operand));
      if (!scalars.back())
        return rewriter.notifyMatchFailure(op, "an operand is not a splat");
    }
    for (Value &scalar : scalars)
      scalar = reshapeTo(
          rewriter, op->getLoc(), scalar,
          RankedTensorType::get({}, getTensorType(scalar).getElementType()));
    OperationState state(op->getLoc(), op->getName(), scalars,
                         {RankedTensorType::get({}, type.getElementType())},
                         op->getAttrs());
    Value scalar = rewriter.create(state)->getResult(0);
    rewriter.replaceOpWithNewOp<BroadcastOp>(op, type, scalar);
    return success();
  }
};

/// The constant that `value` is; broadcasts of constants are evaluated.
DenseElementsAttr getConstantValue(Value value) {
  if (auto constant = value.getDefiningOp<ConstantOp>())
    return dyn_cast<DenseElementsAttr>(constant.getValue());
  auto broadcast = value.getDefiningOp<BroadcastOp>();
  if (!broadcast || !broadcast.getX().getDefiningOp<ConstantOp>())
    return {};
  auto values = evaluateConstants(broadcast);
  if (values)
    return values->front();
  consumeError(values.takeError());
  return {};
}

/// An op on constants = its value
struct EvaluateConstants : RewritePattern {
  explicit EvaluateConstants(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 1, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    // A broadcast and random numbers cost less in a kernel than a larger
    // constant does. A training step has yet to put its seed into the latter.
    if (op->hasTrait<OpTrait::ConstantLike>() ||
        isa<BroadcastOp, RandomOp>(op) ||
        !isa_and_present<GraphDialect>(op->getDialect()))
      return failure();
    SmallVector<DenseElementsAttr> operands;
    for (Value operand : op->getOperands()) {
      operands.push_back(getConstantValue(operand));
      if (!operands.back())
        return rewriter.notifyMatchFailure(op, "an operand is not a constant");
    }
    auto values = evaluateConstants(op, operands);
    if (!values)
      return rewriter.notifyMatchFailure(op, toString(values.takeError()));
    SmallVector<Value> results;
    for (DenseElementsAttr value : *values)
      results.push_back(rewriter.create<ConstantOp>(
          op->getLoc(), cast<RankedTensorType>(value.getType()), value));
    rewriter.replaceOp(op, results);
    return success();
  }
};

/// An op whose results have no elements = constants without elements
struct DropEmpty : RewritePattern {
  explicit DropEmpty(MLIRContext *context)
      : RewritePattern(MatchAnyOpTypeTag(), 2, context) {}

  LogicalResult matchAndRewrite(Operation *op,
                                PatternRewriter &rewriter) const override {
    if (op->getNumOperands() == 0 || op->getNumResults() == 0 || !isPure(op) ||
        !isa_and_present<GraphDialect>(op->getDialect()))
      return failure();
    for (Value result : op->getResults()) {
      RankedTensorType type = getTensorType(result);
      if (!type.hasStaticShape() || type.getNumElements() > 0)
        return rewriter.notifyMatchFailure(op, "has elements");
    }
    SmallVector<Value> results;
    for (Value result : op->getResults()) {
      RankedTensorType type = getTensorType(result);
      results.push_back(rewriter.create<ConstantOp>(
          op->getLoc(), type,
          DenseElementsAttr::get(type, ArrayRef<Attribute>())));
    }
    rewriter.replaceOp(op, results);
    return success();
  }
};

} // namespace

void addConstantPatterns(RewritePatternSet &patterns) {
  patterns
      .add<ShrinkSplat, MoveSplat<ReshapeOp>, MoveSplat<TransposeOp>,
           MoveSplat<SliceOp>, EvaluateSplats, EvaluateConstants, DropEmpty>(
          patterns.getContext());
}

} // namespace tcc
