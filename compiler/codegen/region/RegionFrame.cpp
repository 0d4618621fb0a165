#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/codegen/region/Traffic.h"
#include "compiler/passes/graph/fusion/Cost.h"

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

SmallVector<SymbolAttr> getModuleSymbols(Operation *op) {
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

int64_t getRowsPerTask(int64_t rowSize) {
  return std::max<int64_t>(1, kTaskGrain / std::max<int64_t>(1, rowSize));
}

KernelInfo describeKernel(FusedOp fused, FusedOp region) {
  KernelInfo info;
  info.usesFault = readsIndices(fused);
  info.usedSymbols = getUsedSymbols(region);
  // It counts, and prices nothing.
  fusion::CostModel model(fused->getParentOfType<ModuleOp>(), getHostTarget());
  info.flops = getFlops(fused, model);
  info.bytes = getTraffic(fused, getModuleSymbols(fused));
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
