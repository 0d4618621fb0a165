#include "frontends/Random.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Literals.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;

namespace tcc::onnx_import {

// --- Dropout -----------------------------------------------------------------

/// The mask of a node that drops elements; a float before version 10.
static void setMask(Node &node, Value mask) {
  bool isFloat = node.getVersion() < 10;
  node.setResult(1, isFloat ? node.cast(mask, node.elementType(0)) : mask);
}

/// Whether the exporter meant training or not: the recipe decides.
static void importTrainedDropout(Node &node) {
  Value x = node.input(0);
  double p = node.getVersion() < 12 ? node.floatAttr("ratio", 0.5) : 0.5;
  if (node.getVersion() >= 12 && node.hasInput(1)) {
    auto ratio = node.requireFloats(1, "a ratio");
    p = ratio && ratio->size() == 1 ? ratio->front() : -1;
  }
  if (!(p >= 0 && p <= 1))
    return (void)node.fail("ratio must be a number from 0 to 1");
  std::string site = GraphImporter::getModulePath(node.getProto());
  if (site.empty())
    site = cast<NameLoc>(node.getLoc()).getName().str();
  Operation *op = node.createOp(
      graph::DropoutOp::getOperationName(), x,
      {node.attr("p", p),
       node.attr("site", StringAttr::get(node.getContext(), site)),
       node.attr("key", node.getImporter().numberRandom())});
  if (!op)
    return;
  node.setResult(0, op->getResult(0));
  if (node.hasOutput(1))
    setMask(node, op->getResult(1));
}

/// Fails a node, or a run, that would drop elements.
static void demandInference(Node &node) {
  auto mode = node.sizeInput(2, "training_mode");
  if (!mode)
    return;
  auto isZero = [&](Value x) {
    return node.compare(graph::CompareKind::eq, x, node.constantLike(0, x));
  };
  Value dropsNothing = isZero(node.scalar(*mode));
  if (node.hasInput(1)) {
    auto known = node.knownFloats(1);
    Value ratio = known && known->size() == 1
                      ? node.constant(known->front(), node.elementType(1))
                      : node.reshape(node.input(1), {});
    dropsNothing = node.create<graph::OrOp>({dropsNothing, isZero(ratio)});
  }
  demand(node, dropsNothing, "dropout in training mode", /*isSupported=*/false);
}

/// Inference drops nothing; the mask is then all true.
static void importDropout(Node &node) {
  if (node.getImporter().trains())
    return importTrainedDropout(node);
  bool isTraining = node.getVersion() >= 12 && node.hasInput(2);
  if (isTraining)
    demandInference(node);
  Tensor *x = node.tensor(0);
  if (!x)
    return;
  node.setTensor(0, x);
  if (!node.hasOutput(1))
    return;
  Value kept = node.constant(1, IntegerType::get(node.getContext(), 1));
  setMask(node, node.broadcast(kept, node.shape(0)));
}

// --- Distributions -----------------------------------------------------------
// The attribute `seed` is not read: the numbers are the same in each run, or
// the training's seed decides.

/// The type that `dtype` names, or `fallback` where it is absent; null after
/// failing.
static Type readType(Node &node, Type fallback) {
  int64_t number = node.intAttr("dtype", 0);
  Type type =
      number == 0 ? fallback : getElementType(number, node.getContext());
  if (!type)
    node.unsupported("element type " + getTypeName(number));
  return type;
}

static Value draw(Node &node, graph::RandomKind kind,
                  ArrayRef<AffineExpr> extents, Type type) {
  if (!isa_and_nonnull<FloatType>(type))
    return node.hasFailed() ? nullptr : node.fail("random numbers are floats");
  return drawNumbers(node, kind, extents, type,
                     node.getImporter().numberRandom());
}

/// Numbers of mean 0 and variance 1, or in [0, 1), moved and scaled by
/// attributes.
template <graph::RandomKind kind>
static void setNumbers(Node &node, ArrayRef<AffineExpr> extents, Type type) {
  bool isNormal = kind == graph::RandomKind::normal;
  double low = node.floatAttr(isNormal ? "mean" : "low", 0);
  double scale = node.floatAttr(isNormal ? "scale" : "high", 1);
  if (!isNormal)
    scale -= low;
  Value numbers = draw(node, kind, extents, type);
  if (!numbers)
    return;
  numbers = node.mul(numbers, node.constantLike(scale, numbers));
  node.setResult(0, node.add(numbers, node.constantLike(low, numbers)));
}

template <graph::RandomKind kind> static void importRandom(Node &node) {
  auto shape = node.intsAttr("shape");
  graph::Extents extents;
  for (int64_t extent : shape.value_or(SmallVector<int64_t>())) {
    if (extent < 0)
      return (void)node.fail("a shape without negative extents is expected");
    extents.push_back(node.getSizes().constant(extent));
  }
  setNumbers<kind>(node, extents,
                   readType(node, Float32Type::get(node.getContext())));
}

template <graph::RandomKind kind> static void importRandomLike(Node &node) {
  if (Value x = node.input(0))
    setNumbers<kind>(node, node.extents(x),
                     readType(node, node.elementType(x)));
}

static void importBernoulli(Node &node) {
  Value p = node.input(0);
  Type type = p ? readType(node, node.elementType(p)) : nullptr;
  if (type)
    node.setResult(
        0, node.cast(drawBernoulli(node, p, node.getImporter().numberRandom()),
                     type));
}

static void importMultinomial(Node &node) {
  Value scores = node.input(0);
  int64_t count = node.intAttr("sample_size", 1);
  if (count < 1 || count > kMaxElements)
    return (void)node.fail("sample_size is out of range");
  Type type = readType(node, IntegerType::get(node.getContext(), 32));
  if (scores && type)
    node.setResult(
        0, node.cast(drawClasses(node, scores, node.getSizes().constant(count),
                                 node.getImporter().numberRandom()),
                     type));
}

static constexpr int64_t last = kLastOpset;
static constexpr auto normal = graph::RandomKind::normal;
static constexpr auto uniform = graph::RandomKind::uniform;
static const OpRow rows[] = {
    {"Bernoulli", 15, last, importBernoulli},
    {"Dropout", 7, last, importDropout},
    {"Multinomial", 7, last, importMultinomial},
    {"RandomNormal", 1, last, importRandom<normal>},
    {"RandomNormalLike", 1, last, importRandomLike<normal>},
    {"RandomUniform", 1, last, importRandom<uniform>},
    {"RandomUniformLike", 1, last, importRandomLike<uniform>},
};

ArrayRef<OpRow> getRandomOps() { return rows; }

} // namespace tcc::onnx_import
