//===- SelectKernels.cpp - Ask the target how kernels are launched --------===//
#include "compiler/codegen/Target.h"
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/exec/Passes.h"
#include "dialects/exec/ExecOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_SELECTKERNELSPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

using KernelTable = llvm::StringMap<codegen::KernelInfo>;

struct SelectKernelsPass : impl::SelectKernelsPassBase<SelectKernelsPass> {
  void runOnOperation() override;
};

} // namespace

static LogicalResult analyzeKernels(ModuleOp module, KernelTable &table) {
  bool isSupported = true;
  for (auto kernel : module.getOps<KernelOp>()) {
    auto fused = cast<graph::FusedOp>(kernel.getComputation());
    FailureOr<codegen::KernelInfo> info = codegen::analyzeKernel(fused);
    isSupported &= succeeded(info);
    if (succeeded(info))
      table[kernel.getSymName()] = *info;
  }
  return success(isSupported);
}

/// The fault buffer of `entry`, declared at its start.
static Value getFaultBuffer(EntryOp entry) {
  for (auto buffer : entry.getBody().getOps<BufferOp>())
    if (buffer.getStorage() == StorageClass::fault)
      return buffer;
  constexpr int64_t kBytes = 2 * sizeof(int64_t);
  OpBuilder builder = OpBuilder::atBlockBegin(&entry.getBody().front());
  auto type = BufferType::get(entry.getContext(), MemorySpace::host);
  auto size = AffineMap::get(0, 0, builder.getAffineConstantExpr(kBytes));
  return builder.create<BufferOp>(
      entry.getLoc(), type,
      StorageClassAttr::get(entry.getContext(), StorageClass::fault),
      IntegerAttr(), AffineMapAttr::get(size),
      builder.getI64IntegerAttr(kBytes), IntegerAttr(), UnitAttr(), UnitAttr());
}

static void completeLaunch(LaunchOp launch, const codegen::KernelInfo &info) {
  MLIRContext *context = launch.getContext();
  SmallVector<AffineExpr> sizes;
  for (unsigned symbol : info.usedSymbols)
    sizes.push_back(getAffineSymbolExpr(symbol, context));
  launch.setSizes(graph::makeSizeMap(sizes, context));
  launch.setTasks(graph::makeSizeMap(info.tasks, context));
  if (info.flops)
    launch.setFlops(graph::makeSizeMap(info.flops, context));
  if (info.bytes)
    launch.setBytes(graph::makeSizeMap(info.bytes, context));
  if (info.usesFault && !launch.getFault())
    launch.getFaultMutable().assign(
        getFaultBuffer(launch->getParentOfType<EntryOp>()));
}

void SelectKernelsPass::runOnOperation() {
  KernelTable table;
  if (failed(analyzeKernels(getOperation(), table)))
    return signalPassFailure();
  for (auto entry : getOperation().getOps<EntryOp>()) {
    int64_t workerBytes = 0;
    entry.walk([&](LaunchOp launch) {
      const codegen::KernelInfo &info = table[launch.getKernel()];
      completeLaunch(launch, info);
      workerBytes = std::max(workerBytes, info.workerScratchBytes);
    });
    entry.setWorkerBytes(workerBytes);
  }
}

} // namespace tcc
