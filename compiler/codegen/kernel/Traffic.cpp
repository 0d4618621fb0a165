#include "compiler/codegen/kernel/Traffic.h"

#include "compiler/codegen/kernel/KernelEmitter.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::codegen {

namespace {

/// Counts the elements of a region's values that are read.
class ReadCounter {
public:
  explicit ReadCounter(ArrayRef<SymbolAttr> symbols) : symbols(symbols) {}

  AffineExpr count(Value value);

private:
  ArrayRef<SymbolAttr> symbols;
  llvm::DenseMap<Value, AffineExpr> counts;
};

} // namespace

/// An element of a movement or pointwise op takes at most one of an operand,
/// and is computed where it is read itself.
AffineExpr ReadCounter::count(Value value) {
  if (AffineExpr known = counts.lookup(value))
    return known;
  MLIRContext *context = value.getContext();
  AffineExpr all = getNumElements(getExtents(value), context);
  AffineExpr read = getAffineConstantExpr(0, context);
  for (Operation *reader : value.getUsers())
    read = read + (isa<ElementOpInterface, PointwiseOpInterface>(reader)
                       ? count(reader->getResult(0))
                       : all);
  bool isPart = getRange(read, symbols).max < getRange(all, symbols).max;
  return counts[value] = isPart ? read : all;
}

AffineExpr getTraffic(FusedOp fused, ArrayRef<SymbolAttr> symbols) {
  ReadCounter counter(symbols);
  MLIRContext *context = fused.getContext();
  AffineExpr bytes = getAffineConstantExpr(0, context);
  auto add = [&](Value tensor, AffineExpr elements) {
    bytes = bytes + elements * getStorageBytes(getElementTypeOrSelf(tensor));
  };
  for (Value input : fused.getBody().getArguments())
    add(input, counter.count(input));
  for (Value result : fused.getResults())
    add(result, getNumElements(getExtents(result), context));
  return bytes;
}

} // namespace tcc::codegen
