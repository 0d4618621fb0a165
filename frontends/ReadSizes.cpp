//===- ReadSizes.cpp - Sizes that a run computes --------------------------===//
//
// Integers that are known only at run time become symbols: graph.read_size sets
// them. What must hold between such integers is a size that can only be 1.
//
//===----------------------------------------------------------------------===//
#include "frontends/Emitter.h"
#include "frontends/NumberRanges.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace tcc {

Value Emitter::scalar(const SizeElement &element) {
  if (element.value)
    return element.value;
  auto known = graph::getConstant(element.known);
  return known ? constant(double(*known), builder.getI64Type())
               : size(element.known);
}

/// An element of a tensor of integers; its value is null if it is known.
static SizeElement findElement(TensorElement element) {
  element = findSource(element);
  Value tensor = element.tensor;
  Operation *op = tensor.getDefiningOp();
  if (auto size = dyn_cast_if_present<graph::SizeOp>(op))
    return {size.getExpression().getResult(0), nullptr};
  DenseIntElementsAttr elements;
  if (op && matchPattern(op, m_Constant(&elements))) {
    APInt number = *(elements.value_begin<APInt>() + element.position);
    bool isUnsigned = elements.getElementType().isUnsignedInteger() ||
                      elements.getElementType().isInteger(1);
    return {getAffineConstantExpr(isUnsigned ? number.getZExtValue()
                                             : number.getSExtValue(),
                                  tensor.getContext()),
            nullptr};
  }
  if (isa_and_present<graph::CastOp>(op)) {
    Type source = getElementTypeOrSelf(op->getOperand(0));
    if (source.isInteger() && source.getIntOrFloatBitWidth() > 1)
      return findElement({op->getOperand(0), element.position});
  }
  return {AffineExpr(), tensor};
}

SmallVector<SizeElement> Emitter::elements(Value integers) {
  SmallVector<SizeElement> found;
  auto type = integers ? cast<RankedTensorType>(integers.getType())
                       : RankedTensorType();
  if (!type || !type.hasStaticShape() || type.getNumElements() > kMaxContent) {
    unsupported("a list of sizes of unknown length");
    return found;
  }
  int64_t count = type.getNumElements();
  Value list;
  for (int64_t i = 0; i < count; ++i) {
    SizeElement element = findElement({integers, i});
    if (element.value) {
      if (!list)
        list = cast(reshape(integers, {sizes.constant(count)}),
                    builder.getI64Type());
      element.value = reshape(slice(list, 0, i, 1), {});
    }
    found.push_back(element);
  }
  return found;
}

ModuleOp Emitter::getModule() {
  Operation *parent = builder.getInsertionBlock()->getParentOp();
  return parent ? parent->getParentOfType<ModuleOp>() : ModuleOp();
}

void Emitter::setSymbol(AffineExpr symbol, Value value, StringRef what) {
  ModuleOp module = getModule();
  if (!module) {
    unsupported("a size that a run computes in a branch or loop");
    return;
  }
  graph::setSymbols(module, sizes.getSymbols());
  AffineMap map = graph::makeSizeMap({symbol}, getContext());
  createOp(graph::ReadSizeOp::getOperationName(), {value},
           {attr("symbol", AffineMapAttr::get(map)),
            attr("what", builder.getStringAttr(what))});
}

int64_t Emitter::findMost(const SizeElement &element, int64_t max) {
  if (!element.value)
    return std::min(max, sizes.getRange(element.known).max);
  NumberRange range = findNumberRange({element.value, 0}, sizes);
  return range.max < double(max) ? int64_t(std::max(range.max, 0.0)) : max;
}

AffineExpr Emitter::readSize(const SizeElement &element, StringRef name,
                             int64_t max) {
  if (!element.value)
    return element.known;
  if (failed)
    return sizes.constant(0);
  if (auto bound = sizes.findBound(name))
    max = std::min(max, *bound);
  max = findMost(element, max);
  AffineExpr symbol = sizes.addComputed(name, 0, std::max<int64_t>(max, 0));
  setSymbol(symbol, element.value, ("size '" + name + "'").str());
  return symbol;
}

void Emitter::require(Value isMet, const llvm::Twine &otherwise) {
  if (!isMet || hasFailed())
    return;
  setSymbol(sizes.addComputed("check", 1, 1), isMet, otherwise.str());
}

/// Products of more may not fit an integer.
constexpr int64_t kMostElements = int64_t(1) << 31;

Value Emitter::multiplySizes(ArrayRef<Value> values) {
  Type type = builder.getI64Type();
  Value most = constant(double(kMostElements), type);
  Value product = constant(1, type);
  for (Value value : values)
    product = mul(min(product, most), min(value, most));
  return product;
}

graph::Extents Emitter::readShape(ArrayRef<SizeElement> elements,
                                  StringRef name, int64_t maxElements) {
  double known = 1;
  SmallVector<Value> factors;
  for (const SizeElement &element : elements)
    if (element.value)
      factors.push_back(element.value);
    else
      known *= std::max<double>(sizes.getRange(element.known).max, 1);
  double limit = sizes.findBound(name).value_or(maxElements);
  auto most = std::min(int64_t(limit / known), kMostElements);
  // Where there are too many elements, none is written before the run ends.
  bool isGroup = factors.size() > 1;
  Value isInside, zero = constant(0, builder.getI64Type());
  if (isGroup) {
    Value product = multiplySizes(factors);
    isInside = compare(graph::CompareKind::le, product,
                       constant(double(most), builder.getI64Type()));
    readSize({AffineExpr(), product}, name, most);
  }
  graph::Extents extents, computed;
  for (auto [axis, element] : llvm::enumerate(elements)) {
    SizeElement guarded = element;
    if (isGroup && element.value)
      guarded.value = select(isInside, element.value, zero);
    extents.push_back(readSize(guarded, (name + "." + llvm::Twine(axis)).str(),
                               std::min(most, element.max)));
    if (element.value)
      computed.push_back(extents.back());
  }
  if (!isGroup || failed)
    return extents;
  sizes.limitProduct(computed, computed, most);
  graph::setSymbols(getModule(), sizes.getSymbols());
  return extents;
}

} // namespace tcc
