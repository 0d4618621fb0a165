//===- Simplify.cpp - Canonicalise and evaluate constants -----------------===//
#include "compiler/passes/graph/Passes.h"
#include "dialects/graph/GraphOps.h"

#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_SIMPLIFYPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// The canonicalisation patterns that the ops themselves declare.
void addCanonicalizations(RewritePatternSet &patterns) {
  MLIRContext *context = patterns.getContext();
  for (RegisteredOperationName op : context->getRegisteredOperations())
    op.getCanonicalizationPatterns(patterns, context);
}

struct SimplifyPass : impl::SimplifyPassBase<SimplifyPass> {
  void runOnOperation() override {
    ModuleOp module = getOperation();
    RewritePatternSet patterns(&getContext());
    addCanonicalizations(patterns);
    if (failed(applyPatternsAndFoldGreedily(module, std::move(patterns))))
      return signalPassFailure();
    IRRewriter rewriter(&getContext());
    DominanceInfo dominance(module);
    eliminateCommonSubExpressions(rewriter, dominance, module);
  }
};

} // namespace
} // namespace tcc
