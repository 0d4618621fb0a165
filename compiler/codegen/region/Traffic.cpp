#include "compiler/codegen/region/Traffic.h"

#include "compiler/codegen/region/RegionFrame.h"
#include "compiler/target/Kernel.h"

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

/// The scatter that changes elements of its first operand's buffer, if result
/// `result` is made so.
static ScatterOpInterface findScatterInPlace(FusedOp fused, unsigned result,
                                             Value input) {
  Operation *terminator = fused.getBody().front().getTerminator();
  auto scatter =
      terminator->getOperand(result).getDefiningOp<ScatterOpInterface>();
  return scatter && scatter->getOperand(0) == input ? scatter : nullptr;
}

/// Inputs and results that are changed in place, and how many of their elements
/// are.
static llvm::DenseMap<Value, AffineExpr> findPartsInPlace(FusedOp fused) {
  llvm::DenseMap<Value, AffineExpr> counts;
  auto pairs = fused->getAttrOfType<ArrayAttr>(kInPlaceAttr);
  for (Attribute attr : pairs ? pairs.getValue() : ArrayRef<Attribute>()) {
    ArrayRef<int64_t> pair = cast<DenseI64ArrayAttr>(attr);
    Value input = fused.getBody().getArgument(pair[1]);
    auto scatter = findScatterInPlace(fused, pair[0], input);
    if (!scatter)
      continue;
    AffineExpr updates =
        getNumElements(getExtents(scatter->getOperand(2)), fused.getContext());
    counts[input] = counts[fused.getResult(pair[0])] = updates;
  }
  return counts;
}

AffineExpr getTraffic(FusedOp fused, ArrayRef<SymbolAttr> symbols) {
  ReadCounter counter(symbols);
  MLIRContext *context = fused.getContext();
  llvm::DenseMap<Value, AffineExpr> parts = findPartsInPlace(fused);
  AffineExpr bytes = getAffineConstantExpr(0, context);
  auto add = [&](Value tensor, AffineExpr elements) {
    if (AffineExpr part = parts.lookup(tensor))
      elements = part;
    bytes = bytes + elements * getStorageBytes(getElementTypeOrSelf(tensor));
  };
  for (Value input : fused.getBody().getArguments())
    add(input, counter.count(input));
  for (Value result : fused.getResults())
    add(result, getNumElements(getExtents(result), context));
  return bytes;
}

} // namespace tcc::codegen
