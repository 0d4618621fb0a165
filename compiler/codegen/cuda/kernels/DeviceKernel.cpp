#include "compiler/codegen/cuda/kernels/DeviceKernel.h"
#include "compiler/codegen/cuda/kernels/DescribeLibrary.h"
#include "compiler/codegen/cuda/nvvm/DeviceModule.h"
#include "compiler/codegen/cuda/nvvm/NarrowIndices.h"
#include "compiler/codegen/region/ExternalKernel.h"
#include "compiler/codegen/region/SimplifyRegion.h"
#include "compiler/codegen/region/Sums.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;
using namespace tcc;
using namespace tcc::graph;
using codegen::RegionBuffers;

namespace tcc::cuda {

const Target &getOwnTarget() { return *findTarget("cuda"); }

namespace {

/// A loop structure.
struct KindEmitter {
  PlanFunction plan;
  EmitFunction emit;
};

} // namespace

static KindEmitter getKindEmitter(KernelKind kind) {
  switch (kind) {
  case KernelKind::pointwise:
    return {planPointwise, emitPointwise};
  case KernelKind::row:
    return {planRows, emitRows};
  case KernelKind::attention:
    return {planAttention, emitAttention};
  case KernelKind::contraction:
    return {planContraction, emitContraction};
  case KernelKind::irregular:
    return {planIrregular, emitIrregular};
  case KernelKind::scan:
    return {planScan, emitScan};
  case KernelKind::window:
    return {planWindow, emitWindow};
  case KernelKind::window_sums:
    return {};
  }
  llvm_unreachable("covered switch");
}

bool hasKernels(KernelKind kind) { return getKindEmitter(kind).plan; }

FailureOr<KernelInfo> analyzeKernel(FusedOp fused) {
  KindEmitter emitter = getKindEmitter(fused.getKind());
  if (!emitter.plan)
    return fused.emitOpError("kernel kind ")
           << stringifyKernelKind(fused.getKind()) << " is not supported";
  FailureOr<OwningOpRef<FusedOp>> region = codegen::simplifyRegion(fused);
  if (failed(region))
    return failure();
  FailureOr<LaunchPlan> plan =
      emitter.plan(region->get(), codegen::getSizeSymbols(fused));
  if (failed(plan))
    return failure();
  KernelInfo info =
      codegen::describeKernel(fused, region->get(), getOwnTarget());
  info.tasks = plan->blocks;
  info.threads = plan->threads;
  info.plan = plan->write();
  info.finished =
      codegen::findFinished(region->get(), getOwnTarget().getName());
  describeForLibrary(region->get(), info);
  return info;
}

// --- Plans

static constexpr StringLiteral kBlocks = "blocks", kThreads = "threads";

DictionaryAttr LaunchPlan::write() const {
  Builder b(blocks.getContext());
  NamedAttrList plan(choices);
  plan.set(kBlocks, AffineMapAttr::get(makeSizeMap(blocks, b.getContext())));
  plan.set(kThreads, b.getI64IntegerAttr(threads));
  return plan.getDictionary(b.getContext());
}

FailureOr<LaunchPlan> LaunchPlan::read(FusedOp fused) {
  auto blocks = dyn_cast_if_present<AffineMapAttr>(getChoice(fused, kBlocks));
  auto threads = dyn_cast_if_present<IntegerAttr>(getChoice(fused, kThreads));
  if (!blocks || blocks.getValue().getNumResults() != 1 || !threads)
    return fused.emitOpError("has no plan of its grid");
  return LaunchPlan{blocks.getValue().getResult(0), threads.getInt(),
                    fused->getAttrOfType<DictionaryAttr>(kPlanAttr)};
}

// --- The function

SmallVector<int64_t> getAlignments(FusedOp fused) {
  if (auto noted = fused->getAttrOfType<DenseI64ArrayAttr>(kAlignmentsAttr))
    return SmallVector<int64_t>(noted.asArrayRef());
  return SmallVector<int64_t>(fused.getNumOperands() + fused.getNumResults(),
                              kAccessBytes);
}

/// What LLVM may take for granted of the buffers: an input in the buffer of a
/// result is not read through its own pointer.
static void describeBuffers(gpu::GPUFuncOp function, FusedOp fused) {
  Builder b(function.getContext());
  SmallVector<int64_t> alignments = getAlignments(fused);
  for (auto [i, type] : llvm::enumerate(function.getArgumentTypes())) {
    if (!isa<LLVM::LLVMPointerType>(type))
      break;
    int64_t alignment = i < alignments.size() ? alignments[i] : kAccessBytes;
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(),
                        b.getI64IntegerAttr(alignment));
    function.setArgAttr(i, LLVM::LLVMDialect::getNoAliasAttrName(),
                        b.getUnitAttr());
    if (i < fused.getNumOperands())
      function.setArgAttr(i, LLVM::LLVMDialect::getReadonlyAttrName(),
                          b.getUnitAttr());
  }
}

static gpu::GPUFuncOp createFunction(ModuleOp module, StringRef name,
                                     ArrayRef<Type> arguments,
                                     int64_t threads) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  auto kernels = b.create<gpu::GPUModuleOp>(module.getLoc(), name);
  b.setInsertionPointToStart(kernels.getBody());
  auto function = b.create<gpu::GPUFuncOp>(
      module.getLoc(), name, b.getFunctionType(arguments, TypeRange()));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), b.getUnitAttr());
  function.setKnownBlockSize(
      ArrayRef<int32_t>{static_cast<int32_t>(threads), 1, 1});
  // Without it ptxas spills a few registers now and then, to have more blocks
  // on a multiprocessor than anybody asked for.
  function->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(),
                    b.getI32IntegerAttr(1));
  return function;
}

/// Pointers to the inputs, the results and, if there is one, the fault buffer;
/// then the sizes.
static SmallVector<Type> getArguments(FusedOp region, const KernelInfo &info) {
  MLIRContext *context = region.getContext();
  size_t buffers = region.getBody().getNumArguments() +
                   region.getBody().front().getTerminator()->getNumOperands() +
                   info.usesFault;
  SmallVector<Type> types(buffers, LLVM::LLVMPointerType::get(context));
  types.append(info.usedSymbols.size(), IntegerType::get(context, 64));
  return types;
}

static LogicalResult emitBody(gpu::GPUFuncOp function, FusedOp fused,
                              FusedOp region, EmitFunction emit) {
  Location loc = function.getLoc();
  Block &entry = function.getBody().front();
  KernelBuilder b(loc, function.getContext());
  b.setInsertionPointToStart(&entry);
  unsigned place = 0;
  RegionBuffers buffers = codegen::makeBuffers(
      fused, region, [&] { return entry.getArgument(place++); });
  buffers.fault.isAtomic = true;
  Operation *anchor = b.create<arith::ConstantIndexOp>(0);
  auto readSize = [&](OpBuilder &, unsigned symbol) -> Value {
    return entry.getArgument(place + symbol);
  };
  codegen::ElementEmitter elements(anchor, codegen::getUsedSymbols(region),
                                   readSize, buffers.fault);
  elements.roundToBf16By(codegen::Bf16Rounding::arith);
  elements.bindInputs(region, buffers.inputs);
  SmallVector<SymbolAttr> symbols = codegen::getSizeSymbols(fused);
  DeviceFrame frame{{region, symbols, elements, buffers.results, loc},
                    b.create<gpu::BlockIdOp>(gpu::Dimension::x),
                    b.create<gpu::ThreadIdOp>(gpu::Dimension::x),
                    function};
  if (failed(emit(b, frame)))
    return failure();
  if (frame.sharedBytes > kMaxSharedBytes)
    return fused.emitOpError("needs ")
           << frame.sharedBytes << " bytes of shared memory in a block, of "
           << kMaxSharedBytes;
  b.setInsertionPointToEnd(&entry);
  b.create<gpu::ReturnOp>();
  return success(!elements.hasFailed());
}

/// Whether indices fit into 32 bits: with room for the positions of threads
/// that have nothing to do, at the end of rows and of the space.
static bool hasNarrowIndices(FusedOp region, const LaunchPlan &plan,
                             ArrayRef<SymbolAttr> symbols) {
  constexpr int64_t maxElements = 1 << 26, maxThreads = 1 << 30;
  // Extents are computed from the symbols.
  for (unsigned symbol : codegen::getUsedSymbols(region))
    if (symbols[symbol].getMax() > maxElements)
      return false;
  auto isSmall = [&](Value value) {
    return !isa<RankedTensorType>(value.getType()) ||
           codegen::getMaxCount(getExtents(value), symbols) <= maxElements;
  };
  WalkResult result = region.walk([&](Operation *op) {
    bool areSmall = llvm::all_of(op->getOperands(), isSmall) &&
                    llvm::all_of(op->getResults(), isSmall);
    return areSmall ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !result.wasInterrupted() &&
         getRange(plan.blocks, symbols).max <= maxThreads / plan.threads;
}

FailureOr<OwningOpRef<ModuleOp>> emitKernel(FusedOp fused, StringRef name) {
  KindEmitter emitter = getKindEmitter(fused.getKind());
  FailureOr<OwningOpRef<FusedOp>> region = codegen::simplifyRegion(fused);
  if (failed(region))
    return failure();
  SmallVector<SymbolAttr> symbols = codegen::getSizeSymbols(fused);
  FailureOr<LaunchPlan> plan = LaunchPlan::read(fused);
  if (failed(plan))
    return failure();
  KernelInfo info =
      codegen::describeKernel(fused, region->get(), getOwnTarget());
  OwningOpRef<ModuleOp> module(ModuleOp::create(fused.getLoc()));
  gpu::GPUFuncOp function = createFunction(
      *module, name, getArguments(region->get(), info), plan->threads);
  describeBuffers(function, fused);
  if (failed(emitBody(function, fused, region->get(), emitter.emit)))
    return failure();
  if (hasNarrowIndices(region->get(), *plan, symbols))
    promiseNarrowIndices(*module);
  return module;
}

// --- Shared memory, barriers and shuffles

Buffer DeviceFrame::allocateShared(OpBuilder &b, Type element, int64_t count) {
  Type byte = b.getI8Type();
  std::string name = (function.getName() + "_shared").str();
  auto module = function->getParentOfType<gpu::GPUModuleOp>();
  int64_t offset = sharedEnd;
  sharedEnd +=
      llvm::alignTo(count * codegen::getStorageBytes(element), kAccessBytes);
  sharedBytes = std::max(sharedBytes, sharedEnd);
  auto array = LLVM::LLVMArrayType::get(byte, sharedBytes);
  auto global = module.lookupSymbol<LLVM::GlobalOp>(name);
  if (global) {
    global.setGlobalType(array);
  } else {
    OpBuilder atStart = OpBuilder::atBlockBegin(module.getBody());
    global = atStart.create<LLVM::GlobalOp>(
        loc, array, /*isConstant=*/false, LLVM::Linkage::Internal, name,
        Attribute(), /*alignment=*/kAccessBytes, kSharedSpace);
  }
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointAfterValue(thread);
  Value base = b.create<LLVM::AddressOfOp>(loc, global);
  Value pointer = b.create<LLVM::GEPOp>(
      loc, base.getType(), byte, base,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(offset)}, /*inbounds=*/true);
  return Buffer(pointer, element);
}

void DeviceFrame::reuseShared(KernelBuilder &b) {
  emitBarrier(b);
  sharedEnd = 0;
}

void emitBarrier(KernelBuilder &b) { b.create<gpu::BarrierOp>(); }

void emitWarpBarrier(KernelBuilder &b) {
  Value all = b.create<LLVM::ConstantOp>(b.getI32Type(), -1);
  b.create<NVVM::SyncWarpOp>(all);
}

Value readUnlessEmpty(KernelBuilder &b, DeviceFrame &frame, Value x,
                      llvm::function_ref<Value()> read, Value otherwise) {
  AffineExpr count = getNumElements(getExtents(x), b.getContext());
  if (getRange(count, frame.symbols).min > 0)
    return read();
  Value isThere = b.less(b.index(0), frame.size(b, count));
  return b.choose(isThere, otherwise.getType(), read,
                  [&] { return otherwise; });
}

/// Words and longs as they are; what is narrower, as a word.
Value emitShuffle(KernelBuilder &b, Value value, int64_t mask) {
  Type type = value.getType();
  if (type.isIndex())
    return b.create<arith::IndexCastOp>(
        type,
        emitShuffle(b, b.create<arith::IndexCastOp>(b.getI64Type(), value),
                    mask));
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  if (isNarrow)
    value = b.create<arith::ExtUIOp>(b.getI32Type(), value);
  Value shuffled = b.create<gpu::ShuffleOp>(value, static_cast<int32_t>(mask),
                                            static_cast<int32_t>(kWarp),
                                            gpu::ShuffleMode::XOR)
                       .getShuffleResult();
  return isNarrow ? b.create<arith::TruncIOp>(type, shuffled).getResult()
                  : shuffled;
}

// --- Vectors

SmallVector<Type> getElementTypes(FusedOp region) {
  SmallVector<Type> types;
  for (Value input : region.getBody().getArguments())
    types.push_back(getElementTypeOrSelf(input));
  for (Value yielded : region.getBody().front().getTerminator()->getOperands())
    types.push_back(getElementTypeOrSelf(yielded));
  return types;
}

int64_t chooseVector(ArrayRef<Type> elements, AffineExpr extent) {
  // Eight f32 are two accesses; more would only cost registers.
  constexpr int64_t kMaxElements = 8;
  int64_t count = 1;
  for (Type element : elements)
    count = std::max(count, kAccessBytes / codegen::getStorageBytes(element));
  count = std::min(count, kMaxElements);
  while (count > 1 && !extent.isMultipleOf(count))
    count /= 2;
  return count;
}

void storeResults(KernelBuilder &b, DeviceFrame &frame,
                  ArrayRef<unsigned> results, int64_t lanes,
                  function_ref<SmallVector<Value>(int64_t)> at) {
  // Once: two divisions by a size that may be 0 are never the same index.
  SmallVector<SmallVector<Value>> indices;
  for (int64_t lane = 0; lane < lanes; ++lane)
    indices.push_back(at(lane));
  for (unsigned i : results)
    for (int64_t lane = 0; lane < lanes; ++lane)
      frame.elements.element(b, frame.loc,
                             codegen::getStored(frame, frame.getYields()[i]),
                             indices[lane]);
  for (unsigned i : results)
    for (int64_t lane = 0; lane < lanes; ++lane)
      codegen::storeResult(b, frame, i, indices[lane]);
}

} // namespace tcc::cuda
