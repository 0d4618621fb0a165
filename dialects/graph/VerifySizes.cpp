//===- VerifySizes.cpp - Computed symbols are set before they are used ----===//
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/Shape.h"

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "llvm/ADT/BitVector.h"

using namespace mlir;

namespace tcc::graph {

namespace {

/// Walks a function in the order in which it runs.
class SizeVerifier {
public:
  explicit SizeVerifier(ArrayRef<SymbolAttr> symbols)
      : symbols(symbols), isSet(symbols.size()) {
    for (auto [i, symbol] : llvm::enumerate(symbols))
      if (!symbol.getIsComputed())
        isSet.set(i);
  }

  LogicalResult verify(Block &block) {
    for (Operation &op : block)
      if (failed(verify(op)))
        return failure();
    return success();
  }

private:
  LogicalResult verify(Operation &op) {
    SmallVector<unsigned> defined, definedInside;
    if (auto definition = dyn_cast<SizeDefinitionOpInterface>(op)) {
      defined = definition.getDefinedSymbols();
      definedInside = definition.getBodySymbols();
    }
    for (unsigned symbol : getUsedSymbols(&op))
      if (!llvm::is_contained(defined, symbol) &&
          (symbol >= isSet.size() || !isSet[symbol]))
        return op.emitOpError("uses symbol ")
               << symbol << ", which is not set here";
    for (Region &region : op.getRegions())
      for (Block &block : region) {
        llvm::BitVector outside = isSet;
        for (unsigned symbol : definedInside)
          isSet.set(symbol);
        if (failed(verify(block)))
          return failure();
        isSet = outside;
      }
    for (unsigned symbol : defined)
      isSet.set(symbol);
    return success();
  }

  ArrayRef<SymbolAttr> symbols;
  llvm::BitVector isSet;
};

} // namespace

LogicalResult verifySizes(Operation *op, Attribute symbols) {
  auto module = dyn_cast<ModuleOp>(op);
  auto array = dyn_cast<ArrayAttr>(symbols);
  if (!module || !array || !llvm::all_of(array, llvm::IsaPred<SymbolAttr>))
    return op->emitOpError("expected symbols, found ") << symbols;
  SmallVector<SymbolAttr> all = getSymbols(module);
  auto isComputed = [](SymbolAttr symbol) { return symbol.getIsComputed(); };
  if (llvm::none_of(all, isComputed))
    return success();
  if (!std::is_partitioned(all.begin(), all.end(), [&](SymbolAttr symbol) {
        return !isComputed(symbol);
      }))
    return op->emitOpError("has a computed symbol before one of the inputs");
  for (auto function : module.getOps<FunctionOpInterface>())
    for (Block &block : function.getFunctionBody())
      if (failed(SizeVerifier(all).verify(block)))
        return failure();
  return success();
}

} // namespace tcc::graph
