#include "frontends/onnx/Folding.h"
#include "frontends/onnx/Literals.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

static Size castElement(AffineExpr element, Type type, const Sizes &sizes) {
  if (type.isInteger(1)) {
    auto isTrue = sizes.compare(SizeCompare::ne, element, sizes.constant(0));
    return isTrue ? Size(sizes.constant(*isTrue)) : std::nullopt;
  }
  return holds(type, element, sizes) ? Size(element) : std::nullopt;
}

static void castTo(Node &node, Type type) {
  Tensor *source = node.tensor(0);
  if (!source || source->sequence)
    return (void)node.fail("the input is not a tensor");
  bool isKnown = !isa<FloatType>(node.elementType(0)) || source->content;
  auto content = isKnown ? node.knownContent(0) : std::nullopt;
  Content result;
  for (AffineExpr element : content.value_or(Content()))
    if (Size cast = castElement(element, type, node.getSizes()))
      result.push_back(*cast);
  if (content && result.size() == content->size() &&
      graph::withElementType(source->type, type).hasStaticShape())
    return node.setContent(0, graph::withElementType(source->type, type),
                           std::move(result));
  node.setResult(0, node.cast(node.input(0), type));
}

static void importCast(Node &node) {
  int64_t to = node.intAttr("to", 0);
  Type type = getElementType(to, node.getContext());
  if (!type)
    return (void)node.unsupported("element type " + getTypeName(to));
  castTo(node, type);
}

static void importCastLike(Node &node) {
  if (Tensor *like = node.tensor(1); like && !like->sequence)
    castTo(node, like->type.getElementType());
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Cast", 6, last, importCast, "", true},
    {"CastLike", 15, last, importCastLike},
};

ArrayRef<OpRow> getCastOps() { return rows; }

} // namespace tcc::onnx_import
