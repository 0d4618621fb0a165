//===- MergeKernels.cpp - One kernel for all equal computations -----------===//
#include "compiler/passes/exec/Passes.h"
#include "dialects/exec/ExecOps.h"
#include "dialects/exec/KernelHash.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_MERGEKERNELSPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

struct MergeKernelsPass : impl::MergeKernelsPassBase<MergeKernelsPass> {
  void runOnOperation() override;
};

} // namespace

void MergeKernelsPass::runOnOperation() {
  llvm::StringMap<SmallVector<KernelOp>> byHash;
  llvm::DenseMap<StringAttr, StringAttr> replacements;
  for (auto kernel :
       llvm::make_early_inc_range(getOperation().getOps<KernelOp>())) {
    SmallVector<KernelOp> &candidates = byHash[hashOf(kernel)];
    auto same = llvm::find_if(
        candidates, [&](KernelOp other) { return isEqual(kernel, other); });
    if (same == candidates.end()) {
      candidates.push_back(kernel);
      continue;
    }
    replacements[kernel.getSymNameAttr()] = same->getSymNameAttr();
    kernel.erase();
  }
  getOperation().walk([&](LaunchOp launch) {
    if (auto name = replacements.lookup(launch.getKernelAttr().getAttr()))
      launch.setKernelAttr(FlatSymbolRefAttr::get(name));
  });
}

} // namespace tcc
