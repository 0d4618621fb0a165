//===- Simplify.cpp - Canonicalise and evaluate constants -----------------===//
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/simplify/Patterns.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/evaluate/Evaluator.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_SIMPLIFYPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// Equal values found late enable few rewrites: the rest stays as it is.
constexpr int64_t kMaxRounds = 16;
/// What terminates takes fewer.
constexpr int64_t kMaxRewritesPerOp = 256;

/// The canonicalisation patterns that the ops themselves declare.
void addCanonicalizations(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  for (RegisteredOperationName op : context->getRegisteredOperations())
    op.getCanonicalizationPatterns(patterns, context);
}

struct SimplifyPass : impl::SimplifyPassBase<SimplifyPass> {
  void getDependentDialects(DialectRegistry &registry) const override {
    SimplifyPassBase::getDependentDialects(registry);
    registerEvaluatorDialects(registry); // for constants
  }

  void runOnOperation() override;
};

} // namespace

static FrozenRewritePatternSet collectPatterns(MLIRContext *context,
                                               DecisionLog &log) {
  RewritePatternSet patterns(context);
  addCanonicalizations(patterns);
  addAlgebraPatterns(patterns);
  addConstantPatterns(patterns);
  addTransposePatterns(patterns);
  addReorderPatterns(patterns);
  addConcatPatterns(patterns);
  addSlicePatterns(patterns);
  addWindowPatterns(patterns);
  addControlPatterns(patterns, log);
  return std::move(patterns);
}

/// Rewrites and merges equal values, which enables more rewrites, until nothing
/// changes, or often enough. Fails where rewriting has no end: rewrites that
/// undo each other are our mistake.
static LogicalResult simplifyFully(func::FuncOp function,
                                   const FrozenRewritePatternSet &patterns) {
  int64_t ops = 0;
  function.walk([&](Operation *) { ++ops; });
  GreedyRewriteConfig config;
  config.maxIterations = GreedyRewriteConfig::kNoLimit;
  config.maxNumRewrites = kMaxRewritesPerOp * ops;
  IRRewriter rewriter(function.getContext());
  for (int64_t i = 0; i < kMaxRounds; ++i) {
    if (failed(applyPatternsAndFoldGreedily(function, patterns, config)))
      return failure();
    DominanceInfo dominance(function);
    bool changed = false;
    eliminateCommonSubExpressions(rewriter, dominance, function, &changed);
    if (!changed)
      break;
  }
  return success();
}

void SimplifyPass::runOnOperation() {
  auto simplify = [&](func::FuncOp function, DecisionLog &log) {
    return simplifyFully(function, collectPatterns(&getContext(), log));
  };
  if (succeeded(forEachFunction(getOperation(), "simplify", simplify)))
    return;
  // No error: that would be one of the model.
  getOperation().emitWarning("simplification does not come to an end");
  signalPassFailure();
}

} // namespace tcc
