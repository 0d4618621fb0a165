//===- EmitPtx.cpp - Print the PTX of kernels -----------------------------===//
#include "compiler/codegen/cuda/nvvm/DeviceCode.h"
#include "compiler/codegen/passes/Passes.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_EMITPTXPASS
#include "compiler/codegen/passes/Passes.h.inc"

namespace {

struct EmitPtxPass : impl::EmitPtxPassBase<EmitPtxPass> {
  using EmitPtxPassBase::EmitPtxPassBase;
  void getDependentDialects(DialectRegistry &registry) const override {
    cuda::registerDeviceCode(registry);
  }
  void runOnOperation() override;
};

} // namespace

void EmitPtxPass::runOnOperation() {
  ModuleOp module = getOperation();
  std::string error;
  std::optional<cuda::Arch> target = cuda::parseArch(arch, error);
  if (!target) {
    module.emitError(error);
    return signalPassFailure();
  }
  FailureOr<std::string> ptx = cuda::emitPtx(module, *target);
  if (failed(ptx))
    return signalPassFailure();
  llvm::outs() << *ptx;
  module.getBody()->clear();
}

} // namespace tcc
