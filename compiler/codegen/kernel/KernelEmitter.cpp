#include "compiler/codegen/kernel/KernelEmitter.h"
#include "compiler/codegen/kernel/SimplifyRegion.h"
#include "compiler/codegen/kernel/Traffic.h"
#include "compiler/passes/graph/fusion/Cost.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

OperandRange KernelFrame::getYields() {
  return getBody().getTerminator()->getOperands();
}

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
  case KernelKind::attention:
    return {planAttentionKernel, emitAttentionKernel};
  }
  llvm_unreachable("covered switch");
}

Operation *getAnchor(FusedOp region) {
  for (Operation &op : region.getBody().front())
    if (isa<KernelOpInterface>(op))
      return &op;
  return nullptr;
}

int64_t getRowsPerTask(int64_t rowSize) {
  return std::max<int64_t>(1, kTaskGrain / std::max<int64_t>(1, rowSize));
}

int64_t getMaxCount(ArrayRef<AffineExpr> extents,
                    ArrayRef<SymbolAttr> symbols) {
  int64_t count = 1;
  for (AffineExpr extent : extents)
    count *= std::max<int64_t>(0, getRange(extent, symbols).max);
  return count;
}

// --- Analysis

static SmallVector<SymbolAttr> getModuleSymbols(Operation *op) {
  auto module = op->getParentOfType<ModuleOp>();
  return module ? getSymbols(module) : SmallVector<SymbolAttr>();
}

static void collectSymbols(AffineExpr expression,
                           llvm::SmallSetVector<unsigned, 4> &symbols) {
  expression.walk([&](AffineExpr part) {
    if (auto symbol = dyn_cast<AffineSymbolExpr>(part))
      symbols.insert(symbol.getPosition());
  });
}

/// The symbols in types and size expressions of the region, increasing.
static SmallVector<unsigned> getUsedSymbols(FusedOp region) {
  llvm::SmallSetVector<unsigned, 4> symbols;
  auto addType = [&](Value value) {
    for (AffineExpr extent : getExtents(value))
      collectSymbols(extent, symbols);
  };
  llvm::for_each(region.getBody().getArguments(), addType);
  region.getBody().walk([&](Operation *op) {
    llvm::for_each(op->getResults(), addType);
    for (NamedAttribute attr : op->getAttrs())
      if (auto map = dyn_cast<AffineMapAttr>(attr.getValue()))
        for (AffineExpr result : map.getValue().getResults())
          collectSymbols(result, symbols);
  });
  SmallVector<unsigned> sorted(symbols.begin(), symbols.end());
  llvm::sort(sorted);
  return sorted;
}

static bool readsIndices(FusedOp fused) {
  bool found = false;
  fused.getBody().walk(
      [&](Operation *op) { found |= op->hasTrait<OpTrait::ReadsIndices>(); });
  return found;
}

/// Pointwise work by elements; that of ops with loops of their own at the
/// upper bounds.
static AffineExpr getFlops(FusedOp fused, fusion::CostModel &model) {
  MLIRContext *context = fused.getContext();
  AffineExpr flops = getAffineConstantExpr(0, context);
  for (Operation &op : fused.getBody().front().without_terminator()) {
    if (isa<KernelOpInterface>(op)) {
      fusion::Work work = model.getKernelWork(&op);
      flops = flops + int64_t(work.flops + work.contractionFlops);
    } else if (isa<PointwiseOpInterface>(op)) {
      flops = flops + getNumElements(getExtents(op.getResult(0)), context) *
                          int64_t(model.getElementFlops(&op));
    }
  }
  return flops;
}

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
      emitter->plan(region->get(), getModuleSymbols(fused));
  if (failed(plan))
    return failure();
  KernelInfo info;
  info.tasks = plan->tasks;
  info.workerScratchBytes = plan->scratchBytes;
  info.usesFault = readsIndices(fused);
  info.usedSymbols = getUsedSymbols(region->get());
  fusion::CostModel model(fused->getParentOfType<ModuleOp>());
  info.flops = getFlops(fused, model);
  info.bytes = getTraffic(fused, getModuleSymbols(fused));
  return info;
}

// --- Emission

namespace {

/// The arguments of a kernel as what they stand for.
struct KernelArguments {
  SmallVector<Buffer> inputs, results;
  Buffer fault, scratch;
};

} // namespace

static func::FuncOp createFunction(ModuleOp module, StringRef name) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Type pointer = LLVM::LLVMPointerType::get(b.getContext());
  Type i64 = b.getI64Type();
  auto type =
      b.getFunctionType({pointer, pointer, i64, i64, pointer}, TypeRange());
  auto function = b.create<func::FuncOp>(module.getLoc(), name, type);
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

/// The inputs that lie in a result's buffer are read through that buffer, so
/// that LLVM sees one pointer.
static void shareBuffers(FusedOp fused, KernelArguments &arguments) {
  auto pairs = fused->getAttrOfType<ArrayAttr>(kInPlaceAttr);
  if (!pairs)
    return;
  for (Attribute attr : pairs) {
    ArrayRef<int64_t> pair = cast<DenseI64ArrayAttr>(attr);
    const Buffer &result = arguments.results[pair[0]];
    Buffer &input = arguments.inputs[pair[1]];
    Type elementType = input.getElementType();
    input = Buffer(result.getPointer(), elementType);
    input.scopes = result.scopes;
    input.otherScopes = result.otherScopes;
  }
}

static KernelArguments loadArguments(OpBuilder &b, Location loc, FusedOp region,
                                     Block *entry, bool usesFault) {
  KernelArguments arguments;
  int64_t place = 0;
  auto load = [&](Type elementType) {
    Value pointer = loadPointer(b, loc, entry->getArgument(0), place++);
    return Buffer(pointer, elementType);
  };
  for (Value input : region.getBody().getArguments())
    arguments.inputs.push_back(load(getElementTypeOrSelf(input)));
  for (Value yielded : region.getBody().front().getTerminator()->getOperands())
    arguments.results.push_back(load(getElementTypeOrSelf(yielded)));
  if (usesFault)
    arguments.fault = load(b.getI64Type());
  SmallVector<Buffer *> separated;
  for (Buffer &input : arguments.inputs)
    separated.push_back(&input);
  for (Buffer &result : arguments.results)
    separated.push_back(&result);
  if (usesFault)
    separated.push_back(&arguments.fault);
  separate(separated);
  return arguments;
}

static LogicalResult emitBody(func::FuncOp function, FusedOp region,
                              FusedOp fused, const KernelKindEmitter &emitter,
                              const KernelOptions &options) {
  Location loc = function.getLoc();
  Block *entry = &function.getBody().front();
  OpBuilder b = OpBuilder::atBlockBegin(entry);
  KernelArguments arguments =
      loadArguments(b, loc, region, entry, readsIndices(fused));
  shareBuffers(fused, arguments);
  Operation *anchor = b.create<arith::ConstantIndexOp>(loc, 0);
  auto toIndex = [&](unsigned argument) {
    return b.create<arith::IndexCastOp>(loc, b.getIndexType(),
                                        entry->getArgument(argument));
  };
  Value firstTask = toIndex(2), lastTask = toIndex(3);
  SmallVector<unsigned> usedSymbols = getUsedSymbols(region);
  ElementEmitter elements(anchor, entry->getArgument(1), usedSymbols,
                          arguments.fault);
  for (auto [input, buffer] :
       llvm::zip_equal(region.getBody().getArguments(), arguments.inputs))
    elements.bind(input, buffer);
  SmallVector<SymbolAttr> symbols = getModuleSymbols(fused);
  KernelFrame frame{region,
                    symbols,
                    options,
                    elements,
                    arguments.results,
                    firstTask,
                    lastTask,
                    entry->getArgument(4),
                    loc};
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

} // namespace tcc::codegen
