//===- VerifyFusion.cpp - Check what code generation assumes --------------===//
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/fusion/Region.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace tcc::fusion;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_VERIFYFUSIONPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct VerifyFusionPass : impl::VerifyFusionPassBase<VerifyFusionPass> {
  void runOnOperation() override;
};

} // namespace

static LogicalResult verifyBody(FusedOp fused, CostModel &model) {
  Body body = getBody(fused);
  for (Operation *op : body.members)
    if (!isFusible(op))
      return op->emitOpError("cannot stand inside a kernel");
  for (Value result : body.results)
    if (!llvm::is_contained(body.members, result.getDefiningOp()))
      return fused.emitOpError("yields what it does not compute");
  Analysis analysis = analyzeRegion(body.members, body.results, model);
  if (!analysis.region)
    return fused.emitOpError("is not one kernel: ") << analysis.refusal;
  if (analysis.region->kind != fused.getKind())
    return fused.emitOpError("is of kind ")
           << stringifyKernelKind(analysis.region->kind);
  return success();
}

static LogicalResult verifyOp(Operation *op, CostModel &model) {
  if (auto fused = dyn_cast<FusedOp>(op))
    return verifyBody(fused, model);
  if (isa<FusedOp>(op->getParentOp()) || !isFusible(op))
    return success();
  return op->emitOpError("stands outside a kernel");
}

void VerifyFusionPass::runOnOperation() {
  CostModel model(getOperation(), getTarget(getOperation()));
  WalkResult result = getOperation()->walk([&](Operation *op) {
    if (op == getOperation() || succeeded(verifyOp(op, model)))
      return WalkResult::advance();
    return WalkResult::interrupt();
  });
  if (result.wasInterrupted())
    signalPassFailure();
}

} // namespace tcc
