//===- Decompose.cpp - Replace composites that have no kernel -------------===//
#include "compiler/passes/graph/Passes.h"
#include "compiler/target/Target.h"
#include "dialects/graph/GraphOps.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_DECOMPOSEPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct DecomposePass : impl::DecomposePassBase<DecomposePass> {
  using DecomposePassBase::DecomposePassBase;
  void runOnOperation() override;
  SmallVector<DecomposableOpInterface> collectComposites();
};

} // namespace

static bool hasKernel(DecomposableOpInterface op, const Target &target) {
  if (auto external = dyn_cast<ExternalKernelOpInterface>(op.getOperation()))
    return bool(external.findKernel(target.getName()));
  auto kernel = dyn_cast<KernelOpInterface>(op.getOperation());
  return kernel && !op.isBetterDecomposed() &&
         target.hasKernels(kernel.getKernelKind());
}

SmallVector<DecomposableOpInterface> DecomposePass::collectComposites() {
  SmallVector<DecomposableOpInterface> composites;
  const Target &target = getTarget(getOperation());
  // What is inside of a composite goes with it.
  getOperation()->walk<WalkOrder::PreOrder>([&](DecomposableOpInterface op) {
    if (awaitsPrecision && op.awaitsPrecision())
      return WalkResult::skip();
    if (hasKernel(op, target))
      op.keepWhole();
    else
      composites.push_back(op);
    return WalkResult::skip();
  });
  return composites;
}

static LogicalResult replaceComposite(DecomposableOpInterface op) {
  OpBuilder builder(op);
  FailureOr<SmallVector<Value>> values = op.decompose(builder);
  if (failed(values))
    return op->emitOpError("has neither a kernel nor a decomposition");
  op->replaceAllUsesWith(*values);
  op->erase();
  return success();
}

/// What a composite becomes may hold composites.
void DecomposePass::runOnOperation() {
  for (auto composites = collectComposites(); !composites.empty();
       composites = collectComposites())
    for (DecomposableOpInterface op : composites)
      if (failed(replaceComposite(op)))
        return signalPassFailure();
}

} // namespace tcc
