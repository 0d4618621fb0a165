//===- LowerKernels.cpp - Show the loops of fused regions -----------------===//
#include "compiler/codegen/Passes.h"
#include "compiler/codegen/kernel/KernelEmitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_LOWERKERNELSPASS
#include "compiler/codegen/Passes.h.inc"

namespace {

struct LowerKernelsPass : impl::LowerKernelsPassBase<LowerKernelsPass> {
  using LowerKernelsPassBase::LowerKernelsPassBase;
  void runOnOperation() override;
};

} // namespace

/// Puts the kernel of `fused` where `function` stands.
static LogicalResult replaceByKernel(func::FuncOp function,
                                     graph::FusedOp fused,
                                     const codegen::KernelOptions &options) {
  auto kernel = codegen::emitKernel(fused, function.getSymName(), options);
  if (failed(kernel))
    return failure();
  auto &ops = (*kernel)->getBody()->getOperations();
  function->getBlock()->getOperations().splice(function->getIterator(), ops);
  function.erase();
  return success();
}

void LowerKernelsPass::runOnOperation() {
  codegen::KernelOptions options;
  options.vectorBytes = vectorBytes;
  auto functions = llvm::to_vector(getOperation().getOps<func::FuncOp>());
  for (func::FuncOp function : functions) {
    auto regions = function.getOps<graph::FusedOp>();
    if (!regions.empty() &&
        failed(replaceByKernel(function, *regions.begin(), options)))
      return signalPassFailure();
  }
}

} // namespace tcc
