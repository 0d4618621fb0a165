//===- LowerToExec.cpp - Functions of kernels become entry points ---------===//
#include "compiler/lowering/EntryLowering.h"
#include "compiler/lowering/Passes.h"

using namespace mlir;

namespace tcc {

#define GEN_PASS_DEF_LOWERTOEXECPASS
#include "compiler/lowering/Passes.h.inc"

namespace {

struct LowerToExecPass : impl::LowerToExecPassBase<LowerToExecPass> {
  using LowerToExecPassBase::LowerToExecPassBase;
  void runOnOperation() override;
};

} // namespace

void LowerToExecPass::runOnOperation() {
  ModuleOp module = getOperation();
  lowering::ProgramTables tables(module);
  SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
  for (func::FuncOp function : functions)
    if (failed(lowering::EntryLowering(function, tables).lower()))
      return signalPassFailure();
  // The tables stand before the first function until all is lowered.
  for (func::FuncOp function : functions)
    function.erase();
}

} // namespace tcc
