//===- RecognizeSoftmax.cpp - Softmax that exporters wrote out ------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/Rows.h"

#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_RECOGNIZESOFTMAXPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// x - max(x) along one axis.
struct Shifted {
  Value x;
  int64_t axis;
};
std::optional<Shifted> matchShifted(Value value) {
  auto sub = value ? value.getDefiningOp<SubOp>() : SubOp();
  auto row = sub ? matchRow(sub.getRhs()) : std::nullopt;
  if (!row || row->reduce.getKind() != ReduceKind::max ||
      row->coefficient != 1.0 || row->reduce.getX() != sub.getLhs() ||
      row->reduce.getAxes().size() != 1)
    return std::nullopt;
  return Shifted{sub.getLhs(), row->reduce.getAxes()[0]};
}

/// True if `row` is the plain sum of `x` along `axis`.
bool isSumAlong(std::optional<ScaledReduction> row, Value x, int64_t axis) {
  return row && row->isSumOf(x) && row->coefficient == 1.0 &&
         row->reduce.getAxes() == ArrayRef(axis);
}

/// exp(x - max) / sum = softmax(x)
LogicalResult replaceSoftmax(Operation *op, Value numerator, Value divisor,
                             bool isReciprocal, PatternRewriter &rewriter,
                             DecisionLog &log) {
  auto exp = numerator.getDefiningOp<ExpOp>();
  auto shifted = exp ? matchShifted(exp.getX()) : std::nullopt;
  if (!shifted)
    return rewriter.notifyMatchFailure(op, "not of exp(x - max)");
  std::optional<ScaledReduction> sum;
  if (isReciprocal) {
    Value repeated = getRepeated(divisor, shifted->axis);
    if (!repeated)
      return rewriter.notifyMatchFailure(op, "not with a value for each row");
    auto reciprocal =
        lookThroughUnitReshapes(repeated).getDefiningOp<ReciprocalOp>();
    sum = reciprocal ? matchReduction(reciprocal.getX()) : std::nullopt;
  } else {
    sum = matchRow(divisor);
  }
  if (!isSumAlong(sum, numerator, shifted->axis))
    return rewriter.notifyMatchFailure(op, "not divided by the sum");
  log.add(op, "recognised", SoftmaxOp::getOperationName());
  rewriter.replaceOpWithNewOp<SoftmaxOp>(op, shifted->x, shifted->axis);
  return success();
}

struct RecognizeQuotient : OpRewritePattern<DivOp> {
  RecognizeQuotient(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern(context), log(log) {}
  LogicalResult matchAndRewrite(DivOp op,
                                PatternRewriter &rewriter) const override {
    return replaceSoftmax(op, op.getLhs(), op.getRhs(), /*isReciprocal=*/false,
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
      return isa_and_present<ExpOp>(operand.getDefiningOp());
    });
    if (!sides)
      return rewriter.notifyMatchFailure(op, "not of an exponential");
    return replaceSoftmax(op, sides->first, sides->second,
                          /*isReciprocal=*/true, rewriter, log);
  }
  DecisionLog &log;
};

/// (x - max) - log(sum(exp(x - max))) = log_softmax(x)
struct RecognizeLogSoftmax : OpRewritePattern<SubOp> {
  RecognizeLogSoftmax(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern(context), log(log) {}
  LogicalResult matchAndRewrite(SubOp op,
                                PatternRewriter &rewriter) const override {
    auto shifted = matchShifted(op.getLhs());
    Value repeated =
        shifted ? getRepeated(op.getRhs(), shifted->axis) : Value();
    if (!repeated)
      return rewriter.notifyMatchFailure(op, "not with a value for each row");
    auto logarithm = lookThroughUnitReshapes(repeated).getDefiningOp<LogOp>();
    auto sum = logarithm ? matchReduction(logarithm.getX()) : std::nullopt;
    auto exp = sum ? sum->reduce.getX().getDefiningOp<ExpOp>() : ExpOp();
    if (!exp || exp.getX() != op.getLhs() ||
        !isSumAlong(sum, exp.getResult(), shifted->axis))
      return rewriter.notifyMatchFailure(op, "not of x - max and its sum");
    log.add(op, "recognised", LogSoftmaxOp::getOperationName());
    rewriter.replaceOpWithNewOp<LogSoftmaxOp>(op, shifted->x, shifted->axis);
    return success();
  }
  DecisionLog &log;
};

struct RecognizeSoftmaxPass
    : impl::RecognizeSoftmaxPassBase<RecognizeSoftmaxPass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "recognize-softmax");
    RewritePatternSet patterns(&getContext());
    patterns.add<RecognizeQuotient, RecognizeProduct, RecognizeLogSoftmax>(
        &getContext(), log);
    if (failed(
            applyPatternsAndFoldGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace
} // namespace tcc
