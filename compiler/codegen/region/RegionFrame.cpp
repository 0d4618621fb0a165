#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/passes/graph/fusion/Region.h"
#include "dialects/exec/ExecOps.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

Operation *getAnchor(FusedOp region) {
  for (Operation &op : region.getBody().front())
    if (isa<KernelOpInterface>(op))
      return &op;
  return nullptr;
}

int64_t getMaxCount(ArrayRef<AffineExpr> extents,
                    ArrayRef<SymbolAttr> symbols) {
  int64_t count = 1;
  for (AffineExpr extent : extents) {
    int64_t most = std::max<int64_t>(0, getRange(extent, symbols).max);
    if (llvm::MulOverflow(count, most, count))
      return std::numeric_limits<int64_t>::max();
  }
  return count;
}

SmallVector<SymbolAttr> getSizeSymbols(Operation *op) {
  auto kernel = op->getParentOfType<exec::KernelOp>();
  if (kernel && kernel.getSymbols())
    return llvm::to_vector(kernel.getSymbols()->getAsRange<SymbolAttr>());
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

SmallVector<unsigned> getUsedSymbols(FusedOp region) {
  llvm::SmallSetVector<unsigned, 4> symbols;
  auto addType = [&](Value value) {
    for (AffineExpr extent : getExtents(value))
      collectSymbols(extent, symbols);
  };
  llvm::for_each(region.getBody().getArguments(), addType);
  region.getBody().walk([&](Operation *op) {
    for (unsigned symbol : graph::getUsedSymbols(op))
      symbols.insert(symbol);
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

int64_t getRowsPerTask(int64_t rowSize) {
  return std::max<int64_t>(1, kTaskGrain / std::max<int64_t>(1, rowSize));
}

/// The scatter that changes elements of its first operand's buffer, if result
/// `result` is made so.
static ScatterOpInterface findScatterInPlace(FusedOp fused, unsigned result,
                                             Value input) {
  Operation *terminator = fused.getBody().front().getTerminator();
  auto scatter =
      terminator->getOperand(result).getDefiningOp<ScatterOpInterface>();
  return scatter && scatter->getOperand(0) == input ? scatter : nullptr;
}

/// Bytes of a buffer that a scatter changes in place but for the elements that
/// it changes, which are neither read nor written.
static AffineExpr countUntouched(FusedOp fused) {
  MLIRContext *context = fused.getContext();
  AffineExpr bytes = getAffineConstantExpr(0, context);
  auto pairs = fused->getAttrOfType<ArrayAttr>(kInPlaceAttr);
  for (Attribute attr : pairs ? pairs.getValue() : ArrayRef<Attribute>()) {
    ArrayRef<int64_t> pair = cast<DenseI64ArrayAttr>(attr);
    Value input = fused.getBody().getArgument(pair[1]);
    auto scatter = findScatterInPlace(fused, pair[0], input);
    if (!scatter)
      continue;
    AffineExpr all = getNumElements(getExtents(input), context);
    AffineExpr updates =
        getNumElements(getExtents(scatter->getOperand(2)), context);
    int64_t both = 2 * fusion::getElementBytes(input.getType());
    bytes = bytes + (all - updates) * both;
  }
  return bytes;
}

/// Adds the work of `fused`; nothing is known of what fusion does not make.
static void addWork(FusedOp fused, const Target &target, KernelInfo &info) {
  SmallVector<SymbolAttr> symbols = getSizeSymbols(fused);
  fusion::CostModel model(symbols, target);
  fusion::Body body = fusion::getBody(fused);
  if (body.members.empty() || llvm::any_of(body.results, [](Value result) {
        return !result.getDefiningOp();
      }))
    return;
  fusion::Analysis analysis =
      fusion::countRegion(body.members, body.results, model);
  if (!analysis.region)
    return;
  info.flops = analysis.region->flops;
  info.bytes = analysis.region->bytes - countUntouched(fused);
}

KernelInfo describeKernel(FusedOp fused, FusedOp region, const Target &target) {
  KernelInfo info;
  info.usesFault = readsIndices(fused);
  info.usedSymbols = getUsedSymbols(region);
  addWork(fused, target, info);
  return info;
}

static void shareBuffers(FusedOp fused, RegionBuffers &buffers) {
  auto pairs = fused->getAttrOfType<ArrayAttr>(kInPlaceAttr);
  if (!pairs)
    return;
  for (Attribute attr : pairs) {
    ArrayRef<int64_t> pair = cast<DenseI64ArrayAttr>(attr);
    const Buffer &result = buffers.results[pair[0]];
    Buffer &input = buffers.inputs[pair[1]];
    Type elementType = input.getElementType();
    input = Buffer(result.getPointer(), elementType);
    input.scopes = result.scopes;
    input.otherScopes = result.otherScopes;
  }
}

RegionBuffers makeBuffers(FusedOp fused, FusedOp region,
                          function_ref<Value()> nextPointer) {
  RegionBuffers buffers;
  for (Value input : region.getBody().getArguments())
    buffers.inputs.emplace_back(nextPointer(), getElementTypeOrSelf(input));
  for (Value yielded : region.getBody().front().getTerminator()->getOperands())
    buffers.results.emplace_back(nextPointer(), getElementTypeOrSelf(yielded));
  SmallVector<Buffer *> separated;
  for (Buffer &input : buffers.inputs)
    separated.push_back(&input);
  for (Buffer &result : buffers.results)
    separated.push_back(&result);
  if (readsIndices(fused)) {
    Type i64 = IntegerType::get(fused.getContext(), 64);
    buffers.fault = Buffer(nextPointer(), i64);
    separated.push_back(&buffers.fault);
  }
  separate(separated);
  shareBuffers(fused, buffers);
  return buffers;
}

} // namespace tcc::codegen
