#include "frontends/onnx/Folding.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Float constants are weights: they are only looked into where a size takes
/// part in the computation.
static bool isWorthFolding(Node &node) {
  bool isFloat = false, hasSize = false;
  for (int64_t i = 0; i < node.getNumInputs(); ++i) {
    if (!node.hasInput(i) || node.tensor(i)->sequence)
      return false;
    isFloat |= isa<FloatType>(node.elementType(i));
    hasSize |= node.tensor(i)->content.has_value();
  }
  return !isFloat || hasSize;
}

bool holds(Type type, AffineExpr element, const Sizes &sizes) {
  graph::Range range = sizes.getRange(element);
  unsigned width = type.getIntOrFloatBitWidth();
  // Floats hold whole numbers up to their precision exactly.
  if (auto floatType = dyn_cast<FloatType>(type))
    width = std::min(64u, floatType.getFPMantissaWidth() + 1);
  if (type.isUnsignedInteger() || type.isInteger(1))
    return range.min >= 0 && llvm::isUIntN(width, range.max);
  return llvm::isIntN(width, range.min) && llvm::isIntN(width, range.max);
}

int64_t getPosition(ArrayRef<int64_t> indices, ArrayRef<int64_t> shape) {
  int64_t position = 0;
  for (auto [index, extent] : llvm::zip(indices, shape))
    position = position * extent + index;
  return position;
}

static void advance(MutableArrayRef<int64_t> indices, ArrayRef<int64_t> shape) {
  for (int64_t axis = int64_t(shape.size()) - 1; axis >= 0; --axis) {
    if (++indices[axis] < shape[axis])
      return;
    indices[axis] = 0;
  }
}

/// The element that broadcasting puts at `indices` of the result.
static AffineExpr getBroadcastElement(const Content &content,
                                      ArrayRef<int64_t> shape,
                                      ArrayRef<int64_t> indices) {
  SmallVector<int64_t> own(indices.take_back(shape.size()));
  for (auto [index, extent] : llvm::zip(own, shape))
    index = extent == 1 ? 0 : index;
  return content[getPosition(own, shape)];
}

bool foldElementwise(Node &node, Type resultType, FoldElement fold) {
  if (node.getNumInputs() == 0 || !isWorthFolding(node))
    return false;
  SmallVector<Content> contents;
  graph::Extents extents;
  for (int64_t i = 0; i < node.getNumInputs(); ++i) {
    auto content = node.knownContent(i);
    auto merged = graph::broadcastExtents(extents, node.shape(i));
    if (!content || !merged)
      return false;
    contents.push_back(*content);
    extents = *merged;
  }
  auto type = graph::makeTensorType(extents, resultType);
  if (!type.hasStaticShape() || type.getNumElements() > kMaxContent)
    return false;
  Content result;
  SmallVector<int64_t> indices(type.getRank(), 0);
  for (int64_t n = type.getNumElements(); n > 0; --n) {
    SmallVector<AffineExpr> elements;
    for (auto [i, content] : llvm::enumerate(contents))
      elements.push_back(
          getBroadcastElement(content, node.type(i).getShape(), indices));
    Size element = fold(elements);
    if (!element || !holds(resultType, *element, node.getSizes()))
      return false;
    result.push_back(*element);
    advance(indices, type.getShape());
  }
  node.setContent(0, type, std::move(result));
  return true;
}

bool foldBinary(Node &node, SizeOp op) {
  const Sizes &sizes = node.getSizes();
  if (node.getNumInputs() == 0)
    return false;
  bool isFloat = isa<FloatType>(node.elementType(0));
  return foldElementwise(
      node, node.elementType(0), [&](ArrayRef<AffineExpr> elements) -> Size {
        Size result = elements[0];
        for (AffineExpr next : elements.drop_front()) {
          if (!result)
            return std::nullopt;
          result = isFloat && op == SizeOp::div
                       ? sizes.divideProducts({*result}, next)
                       : sizes.apply(op, *result, next);
        }
        return result;
      });
}

bool foldCompare(Node &node, SizeCompare kind) {
  const Sizes &sizes = node.getSizes();
  Type boolean = IntegerType::get(node.getContext(), 1);
  return foldElementwise(
      node, boolean, [&](ArrayRef<AffineExpr> elements) -> Size {
        auto holds = sizes.compare(kind, elements[0], elements[1]);
        return holds ? Size(sizes.constant(*holds)) : std::nullopt;
      });
}

bool foldMovement(Node &node, ArrayRef<int64_t> shape,
                  llvm::function_ref<int64_t(ArrayRef<int64_t>)> position) {
  Tensor *source = node.tensor(0);
  if (!source ||
      (isa<FloatType>(source->type.getElementType()) && !source->content))
    return false;
  auto content = node.knownContent(0);
  auto type = RankedTensorType::get(shape, source->type.getElementType());
  if (!content || type.getNumElements() > kMaxContent)
    return false;
  Content result;
  SmallVector<int64_t> indices(shape.size(), 0);
  for (int64_t n = type.getNumElements(); n > 0; --n) {
    result.push_back((*content)[position(indices)]);
    advance(indices, shape);
  }
  node.setContent(0, type, std::move(result));
  return true;
}

} // namespace tcc::onnx_import
