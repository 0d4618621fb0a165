//===- VerifyLanes.cpp - Check that lanes do not race ---------------------===//
#include "compiler/passes/exec/Passes.h"
#include "dialects/exec/Order.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_VERIFYLANESPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct VerifyLanesPass : impl::VerifyLanesPassBase<VerifyLanesPass> {
  void runOnOperation() override;
};

} // namespace

void VerifyLanesPass::runOnOperation() {
  for (auto entry : getOperation().getOps<EntryOp>())
    if (entry.getLanes() > 1 && failed(verifyLanes(Order(entry))))
      return signalPassFailure();
}

} // namespace tcc
