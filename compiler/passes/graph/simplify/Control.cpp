#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/passes/graph/simplify/Patterns.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {
namespace {

/// if on a constant = the branch taken
struct TakeBranch : OpRewritePattern<IfOp> {
  TakeBranch(MLIRContext *context, DecisionLog &log)
      : OpRewritePattern(context), log(log) {}

  LogicalResult matchAndRewrite(IfOp op,
                                PatternRewriter &rewriter) const override {
    std::optional<double> condition = getSplat(op.getCondition());
    if (!condition)
      return rewriter.notifyMatchFailure(op, "condition is not known");
    bool taken = *condition != 0.0;
    log.add(op, taken ? "took then" : "took else",
            "the condition is a constant");
    Block &body = (taken ? op.getThenRegion() : op.getElseRegion()).front();
    Operation *yield = body.getTerminator();
    SmallVector<Value> results(yield->getOperands());
    rewriter.eraseOp(yield);
    rewriter.inlineBlockBefore(&body, op);
    rewriter.replaceOp(op, results);
    return success();
  }

  DecisionLog &log;
};

} // namespace

void addControlPatterns(RewritePatternSet &patterns, DecisionLog &log) {
  patterns.add<TakeBranch>(patterns.getContext(), log);
}

} // namespace tcc
