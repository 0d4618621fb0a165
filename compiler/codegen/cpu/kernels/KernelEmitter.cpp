#include "compiler/codegen/cpu/kernels/KernelEmitter.h"
#include "compiler/codegen/region/SimplifyRegion.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::graph;

namespace tcc::cpu {

KernelKindEmitter getKindEmitter(KernelKind kind) {
  switch (kind) {
  case KernelKind::pointwise:
    return {planPointwiseKernel, emitPointwiseKernel};
  case KernelKind::row:
    return {planRowKernel, emitRowKernel};
  case KernelKind::scan:
    return {planScanKernel, emitScanKernel};
  case KernelKind::irregular:
    return {planIrregularKernel, emitIrregularKernel};
  case KernelKind::contraction:
    return {planContractionKernel, emitContractionKernel};
  case KernelKind::window:
    return {planWindowKernel, emitWindowKernel};
  case KernelKind::window_sums:
    return {planWindowSumsKernel, emitWindowSumsKernel};
  case KernelKind::attention:
    return {planAttentionKernel, emitAttentionKernel};
  }
  llvm_unreachable("covered switch");
}

// --- Analysis

static FailureOr<KernelKindEmitter> getSupportedKind(FusedOp fused) {
  KernelKindEmitter emitter = getKindEmitter(fused.getKind());
  if (!emitter.plan)
    return fused.emitOpError("kernel kind ")
           << stringifyKernelKind(fused.getKind()) << " is not supported";
  return emitter;
}

FailureOr<KernelInfo> analyzeKernel(FusedOp fused) {
  FailureOr<KernelKindEmitter> emitter = getSupportedKind(fused);
  if (failed(emitter))
    return failure();
  FailureOr<OwningOpRef<FusedOp>> region = simplifyRegion(fused);
  if (failed(region))
    return failure();
  FailureOr<TaskPlan> plan =
      emitter->plan(region->get(), getSizeSymbols(fused));
  if (failed(plan))
    return failure();
  KernelInfo info = describeKernel(fused, region->get(), getHostTarget());
  info.tasks = plan->tasks;
  info.workerScratchBytes = plan->scratchBytes;
  info.plan = plan->plan;
  info.alternatives = std::move(plan->alternatives);
  return info;
}

// --- Emission

static func::FuncOp createFunction(ModuleOp module, StringRef name) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto type =
      b.getFunctionType({pointer, pointer, i64, i64, pointer}, TypeRange());
  auto function = b.create<func::FuncOp>(module.getLoc(), name, type);
  // The table of buffers, the sizes and the scratch of the worker overlap
  // neither each other nor any buffer.
  for (auto [i, argument] : llvm::enumerate(type.getInputs()))
    if (argument == pointer)
      function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                          b.getUnitAttr());
  function.addEntryBlock();
  return function;
}

static Value loadPointer(OpBuilder &b, Location loc, Value table,
                         int64_t place) {
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Value address = b.create<LLVM::GEPOp>(loc, pointer, pointer, table,
                                        ArrayRef<LLVM::GEPArg>{int32_t(place)});
  return b.create<LLVM::LoadOp>(loc, pointer, address);
}

static LogicalResult emitBody(func::FuncOp function, FusedOp region,
                              FusedOp fused, const KernelKindEmitter &emitter,
                              const KernelOptions &options) {
  Location loc = function.getLoc();
  Block *entry = &function.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(entry);
  int64_t place = 0;
  RegionBuffers buffers = makeBuffers(fused, region, [&] {
    return loadPointer(b, loc, entry->getArgument(0), place++);
  });
  Operation *anchor = b.create<arith::ConstantIndexOp>(loc, 0);
  auto toIndex = [&](unsigned argument) {
    return b.create<arith::IndexCastOp>(loc, b.getIndexType(),
                                        entry->getArgument(argument));
  };
  Value firstTask = toIndex(2), lastTask = toIndex(3);
  Buffer sizes(entry->getArgument(1), b.getI64Type());
  auto loadSize = [&](OpBuilder &b, unsigned place) {
    return sizes.load(b, loc, emitIndex(b, loc, place));
  };
  ElementEmitter elements(anchor, getUsedSymbols(region), loadSize,
                          buffers.fault);
  if (options.hasPairProducts)
    elements.roundToBf16By(Bf16Rounding::llvm);
  elements.bindInputs(region, buffers.inputs);
  SmallVector<SymbolAttr> symbols = getSizeSymbols(fused);
  KernelFrame frame{{region, symbols, elements, buffers.results, loc},
                    options,
                    firstTask,
                    lastTask,
                    entry->getArgument(4)};
  if (failed(emitter.emit(b, frame)))
    return failure();
  b.create<func::ReturnOp>(loc);
  return success(!elements.hasFailed());
}

FailureOr<OwningOpRef<ModuleOp>> emitKernel(FusedOp fused, StringRef name,
                                            const KernelOptions &options) {
  FailureOr<KernelKindEmitter> emitter = getSupportedKind(fused);
  if (failed(emitter))
    return failure();
  FailureOr<OwningOpRef<FusedOp>> region = simplifyRegion(fused);
  if (failed(region))
    return failure();
  OwningOpRef<ModuleOp> module(ModuleOp::create(fused.getLoc()));
  func::FuncOp function = createFunction(*module, name);
  if (failed(emitBody(function, region->get(), fused, *emitter, options)))
    return failure();
  return module;
}

} // namespace tcc::cpu
