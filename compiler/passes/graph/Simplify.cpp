//===- Simplify.cpp - Canonicalise and evaluate constants -----------------===//
#include "compiler/evaluate/Evaluator.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/simplify/Patterns.h"
#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_SIMPLIFYPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

constexpr int64_t kMaxRounds = 4;

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

  void runOnOperation() override {
    ModuleOp module = getOperation();
    DecisionLog log(module, "simplify");
    RewritePatternSet patterns(&getContext());
    addCanonicalizations(patterns);
    addAlgebraPatterns(patterns);
    addConstantPatterns(patterns);
    addTransposePatterns(patterns);
    addSlicePatterns(patterns);
    addControlPatterns(patterns, log);
    FrozenRewritePatternSet frozen(std::move(patterns));
    IRRewriter rewriter(&getContext());
    bool changed = true;
    // Values that have become the same enable more rewrites.
    for (int64_t i = 0; changed && i < kMaxRounds; ++i) {
      // Failure says that the driver's limit of iterations ended the rewriting:
      // the module is valid all the same, and the next round goes on.
      (void)applyPatternsAndFoldGreedily(module, frozen);
      DominanceInfo dominance(module);
      changed = false;
      eliminateCommonSubExpressions(rewriter, dominance, module, &changed);
    }
  }
};

} // namespace
} // namespace tcc
