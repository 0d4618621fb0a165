//===- LowerKernels.cpp - Show the loops of fused regions -----------------===//
#include "compiler/codegen/passes/Passes.h"
#include "compiler/target/Target.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/DLTI/DLTI.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "compiler/codegen/passes/Passes.h.inc"

namespace {

struct LowerKernelsPass : impl::LowerKernelsPassBase<LowerKernelsPass> {
  using LowerKernelsPassBase::LowerKernelsPassBase;
  void runOnOperation() override;
};

} // namespace

/// Puts `kernel` where `function` stands.
static void replace(func::FuncOp function, ModuleOp kernel) {
  auto &ops = kernel.getBody()->getOperations();
  function->getBlock()->getOperations().splice(function->getIterator(), ops);
  function.erase();
}

void LowerKernelsPass::runOnOperation() {
  KernelOptions options;
  options.vectorBytes = vectorBytes;
  auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  for (func::FuncOp function : functions) {
    auto regions = function.getOps<graph::FusedOp>();
    if (regions.empty())
      continue;
    StringRef name = function.getSymName();
    graph::FusedOp fused = *regions.begin();
    const Target &target = getTarget(function);
    FailureOr<KernelInfo> info = target.plan(fused);
    if (failed(info))
      return signalPassFailure();
    if (info->plan)
      fused->setAttr(kPlanAttr, info->plan);
    auto kernel = target.emit(fused, name, options);
    if (failed(kernel))
      return signalPassFailure();
    replace(function, **kernel);
  }
}

} // namespace tcc
