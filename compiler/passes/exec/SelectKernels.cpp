//===- SelectKernels.cpp - Ask the target how kernels are launched --------===//
#include "compiler/passes/exec/Passes.h"
#include "compiler/target/Target.h"
#include "dialects/exec/ExecOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;
using namespace tcc::exec;

namespace tcc {

#define GEN_PASS_DEF_SELECTKERNELSPASS
#include "compiler/passes/exec/Passes.h.inc"

namespace {

using KernelTable = llvm::StringMap<KernelInfo>;

struct SelectKernelsPass : impl::SelectKernelsPassBase<SelectKernelsPass> {
  void runOnOperation() override;
};

} // namespace

static LogicalResult analyzeKernels(ModuleOp module, KernelTable &table) {
  bool isSupported = true;
  for (auto kernel : module.getOps<KernelOp>()) {
    auto fused = cast<graph::FusedOp>(kernel.getComputation());
    FailureOr<KernelInfo> info = getTarget(kernel).plan(fused);
    isSupported &= succeeded(info);
    if (failed(info))
      continue;
    table[kernel.getSymName()] = *info;
    if (info->threads > 0)
      kernel.setThreads(info->threads);
    if (info->plan)
      fused->setAttr(kPlanAttr, info->plan);
    if (info->library)
      kernel.setLibraryAttr(info->library);
    if (info->finished)
      kernel.setFinishedAttr(info->finished);
  }
  return success(isSupported);
}

/// The fault buffer of `launch`'s entry, declared at its start.
static Value getFaultBuffer(LaunchOp launch) {
  auto entry = launch->getParentOfType<EntryOp>();
  for (auto buffer : entry.getBody().getOps<BufferOp>())
    if (buffer.getStorage() == StorageClass::fault)
      return buffer;
  constexpr int64_t kBytes = 2 * sizeof(int64_t);
  OpBuilder builder = OpBuilder::atBlockBegin(&entry.getBody().front());
  auto size = AffineMap::get(0, 0, builder.getAffineConstantExpr(kBytes));
  return builder.create<BufferOp>(
      entry.getLoc(), launch.getOutputs().front().getType(),
      StorageClassAttr::get(entry.getContext(), StorageClass::fault),
      IntegerAttr(), AffineMapAttr::get(size),
      builder.getI64IntegerAttr(kBytes), IntegerAttr(), UnitAttr(), UnitAttr());
}

static void completeLaunch(LaunchOp launch, const KernelInfo &info) {
  MLIRContext *context = launch.getContext();
  SmallVector<AffineExpr> sizes;
  if (info.finished)
    llvm::append_range(sizes, info.finished.getSizes().getValue().getResults());
  else
    for (unsigned symbol : info.usedSymbols)
      sizes.push_back(getAffineSymbolExpr(symbol, context));
  for (AffineExpr &size : sizes)
    size = launch.bind(size);
  launch.setSizes(graph::makeSizeMap(sizes, context));
  launch.setTasks(graph::makeSizeMap(launch.bind(info.tasks), context));
  if (info.flops)
    launch.setFlops(graph::makeSizeMap(launch.bind(info.flops), context));
  if (info.bytes)
    launch.setBytes(graph::makeSizeMap(launch.bind(info.bytes), context));
  if (info.usesFault && !launch.getFault())
    launch.getFaultMutable().assign(getFaultBuffer(launch));
}

/// Bytes that the address of `buffer` is a multiple of, up to what counts.
static int64_t getAlignment(Value buffer) {
  int64_t alignment = kMaxAccessBytes;
  while (auto view = buffer.getDefiningOp<ViewOp>()) {
    alignment = std::gcd(
        alignment, view.getOffset().getResult(0).getLargestKnownDivisor());
    buffer = view.getBase();
  }
  return alignment;
}

/// Notes with each computation what all its launches promise, if that counts.
static void noteAlignments(ModuleOp module) {
  llvm::StringMap<SmallVector<int64_t>> least;
  module.walk([&](LaunchOp launch) {
    SmallVector<int64_t> alignments;
    for (Value buffer : launch.getInputs())
      alignments.push_back(getAlignment(buffer));
    for (Value buffer : launch.getOutputs())
      alignments.push_back(getAlignment(buffer));
    SmallVector<int64_t> &known = least[launch.getKernel()];
    known.resize(alignments.size(), kMaxAccessBytes);
    for (auto [lowest, alignment] : llvm::zip_equal(known, alignments))
      lowest = std::min(lowest, alignment);
  });
  for (auto kernel : module.getOps<KernelOp>()) {
    ArrayRef<int64_t> known = least[kernel.getSymName()];
    int64_t access = getTarget(kernel).getCapabilities().accessBytes;
    if (llvm::any_of(known, [&](int64_t bytes) { return bytes < access; }))
      kernel.getComputation()->setAttr(
          kAlignmentsAttr, DenseI64ArrayAttr::get(module.getContext(), known));
  }
}

/// What a library may take to compute `kernel`: less than so many results of
/// f32, and no more than libraries ask for. Convolutions turn operands around.
static int64_t getWorkspaceBytes(KernelOp kernel,
                                 ArrayRef<graph::SymbolAttr> symbols) {
  constexpr int64_t kParts = 16, kMost = int64_t(32) << 20;
  std::optional<LibraryWorkAttr> work = kernel.getLibrary();
  if (!work)
    return 0;
  if (work->getWindow())
    return kMost;
  int64_t bytes = kParts * sizeof(float);
  for (AffineExpr extent : work->getResult().getExtents()) {
    int64_t most = std::max<int64_t>(1, graph::getRange(extent, symbols).max);
    if (llvm::MulOverflow(bytes, most, bytes))
      return kMost;
  }
  return std::min(bytes, kMost);
}

void SelectKernelsPass::runOnOperation() {
  noteAlignments(getOperation());
  KernelTable table;
  SmallVector<graph::SymbolAttr> symbols = graph::getSymbols(getOperation());
  SymbolTable kernels(getOperation());
  if (failed(analyzeKernels(getOperation(), table)))
    return signalPassFailure();
  for (auto entry : getOperation().getOps<EntryOp>()) {
    int64_t workerBytes = 0, workspaceBytes = 0;
    entry.walk([&](LaunchOp launch) {
      const KernelInfo &info = table[launch.getKernel()];
      completeLaunch(launch, info);
      workerBytes = std::max(workerBytes, info.workerScratchBytes);
      auto kernel = kernels.lookup<KernelOp>(launch.getKernel());
      workspaceBytes =
          std::max(workspaceBytes, getWorkspaceBytes(kernel, symbols));
    });
    entry.setWorkerBytes(workerBytes);
    if (workspaceBytes > 0)
      entry.setWorkspaceBytes(workspaceBytes);
  }
}

} // namespace tcc
