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

/// How a cast to powers of two rounds; nullopt after failing.
static std::optional<PowerRounding> readRounding(Node &node) {
  std::string mode = node.stringAttr("round_mode", "up");
  if (mode == "up")
    return PowerRounding::up;
  if (mode == "down")
    return PowerRounding::down;
  if (mode == "nearest")
    return PowerRounding::nearest;
  node.fail("round_mode must be up, down or nearest");
  return std::nullopt;
}

static void castToNarrow(Node &node, const NarrowType &type) {
  bool saturates = node.intAttr("saturate", 1) != 0;
  if (auto rounding = readRounding(node))
    node.setNarrow(0, encode(node, node.input(0), type, saturates, *rounding),
                   type);
}

static void importCast(Node &node) {
  int64_t to = node.intAttr("to", 0);
  if (const NarrowType *narrow = findNarrowType(to))
    return castToNarrow(node, *narrow);
  Type type = getElementType(to, node.getContext());
  if (!type)
    return (void)node.unsupported("element type " + getTypeName(to));
  castTo(node, type);
}

static void importCastLike(Node &node) {
  if (const NarrowType *narrow = node.narrowType(1))
    return castToNarrow(node, *narrow);
  if (Tensor *like = node.tensor(1); like && !like->sequence)
    castTo(node, like->type.getElementType());
}

static void importBitCast(Node &node) {
  int64_t to = node.intAttr("to", 0);
  Type type = getElementType(to, node.getContext());
  Value x = node.input(0);
  if (!x)
    return;
  // A boolean is a byte of 0 or 1.
  if (node.elementType(x).isInteger(1))
    x = node.cast(
        x, IntegerType::get(node.getContext(), 8, IntegerType::Unsigned));
  auto hasBits = [](Type element) {
    return element && !element.isInteger(1) &&
           (isa<IntegerType>(element) || element.isF32() || element.isF64());
  };
  if (!hasBits(type))
    return (void)node.unsupported("element type " + getTypeName(to));
  if (!hasBits(node.elementType(x)))
    return (void)node.unsupported("an input of this element type");
  node.setResult(0, node.create<graph::BitcastOp>(
                        x, {},
                        graph::withElementType(
                            cast<RankedTensorType>(x.getType()), type)));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"BitCast", 26, last, importBitCast},
    {"Cast", 6, last, importCast, "", true},
    {"CastLike", 15, last, importCastLike, "", true},
};

ArrayRef<OpRow> getCastOps() { return rows; }

} // namespace tcc::onnx_import
