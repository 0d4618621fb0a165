#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

static Type getIndexType(Node &node) {
  return IntegerType::get(node.getContext(), 64);
}

Value index(Node &node, int64_t value) {
  return node.constant(double(value), getIndexType(node));
}

void demand(Node &node, Value condition, const llvm::Twine &otherwise,
            bool isSupported) {
  auto known = node.knownNumber(condition);
  if (!known)
    node.require(condition,
                 isSupported ? otherwise : otherwise + " is not supported");
  else if (*known == 0 && isSupported)
    node.fail(otherwise);
  else if (*known == 0)
    node.unsupported(otherwise);
}

static Value isEqual(Node &node, Value a, int64_t b) {
  return node.compare(CompareKind::eq, a, index(node, b));
}

static Value logicalOr(Node &node, Value a, Value b) {
  return a ? node.create<graph::OrOp>({a, b}) : b;
}

void requireAxis(Node &node, Value axis, int64_t rank) {
  node.require(node.create<graph::AndOp>(
                   {node.compare(CompareKind::ge, axis, index(node, -rank)),
                    node.compare(CompareKind::lt, axis, index(node, rank))}),
               "an axis is out of range for rank " + llvm::Twine(rank));
}

Value isAxis(Node &node, Value axis, int64_t own, int64_t rank) {
  return logicalOr(node, isEqual(node, axis, own),
                   isEqual(node, axis, own - rank));
}

int64_t countElements(Node &node, Value x) {
  int64_t most = x ? node.getSizes().getMaxElements(node.extents(x)) : 0;
  // Without elements extents may be anything.
  return most > 0 ? most : kUsualElements;
}

Value flatten(Node &node, Value x) {
  if (!x)
    return nullptr;
  AffineExpr count = graph::getNumElements(node.extents(x), node.getContext());
  Value flat = node.reshape(x, {count});
  return node.getSizes().getRange(count).min > 0
             ? flat
             : node.pad(flat, node.constantLike(0, x), 0, 1);
}

// --- Reshape -----------------------------------------------------------------

/// The elements of a shape with 0 and -1 resolved.
static SmallVector<SizeElement> resolveShape(Node &node, Value x, Value count) {
  graph::Extents source = node.extents(x);
  SmallVector<SizeElement> shape = node.elements(node.input(1));
  bool allowZero = node.intAttr("allowzero", 0) != 0;
  SmallVector<Value> others;
  for (auto [axis, element] : llvm::enumerate(shape)) {
    bool hasSource = !allowZero && axis < source.size();
    auto known =
        element.value ? std::nullopt : graph::getConstant(element.known);
    if (known == 0 && hasSource)
      element.known = source[axis];
    else if (element.value && hasSource)
      element.value = node.select(isEqual(node, element.value, 0),
                                  node.size(source[axis]), element.value);
    if (known == -1)
      continue;
    Value extent = node.scalar(element);
    others.push_back(element.value ? node.select(isEqual(node, extent, -1),
                                                 index(node, 1), extent)
                                   : extent);
  }
  Value rest = node.max(node.multiplySizes(others), index(node, 1));
  Value open = node.div(count, rest);
  for (SizeElement &element : shape) {
    if (element.value)
      element.value =
          node.select(isEqual(node, element.value, -1), open, element.value);
    else if (graph::getConstant(element.known) == -1)
      element = {AffineExpr(), open};
  }
  return shape;
}

Value reshapeChecked(Node &node, Value x, MutableArrayRef<SizeElement> shape,
                     StringRef name) {
  graph::Extents source = node.extents(x);
  Value count = node.size(graph::getNumElements(source, node.getContext()));
  SmallVector<Value> extents;
  for (const SizeElement &element : shape)
    extents.push_back(node.scalar(element));
  Value isValid =
      node.compare(CompareKind::eq, node.multiplySizes(extents), count);
  for (SizeElement &element : shape)
    if (element.value)
      element.value = node.select(isValid, element.value, index(node, 0));
  node.require(isValid, "the shape has another number of elements than the "
                        "input");
  return node.reshape(x, node.readShape(shape, name, countElements(node, x)));
}

void reshapeAtRunTime(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  graph::Extents source = node.extents(x);
  Value count = node.size(graph::getNumElements(source, node.getContext()));
  SmallVector<SizeElement> shape = resolveShape(node, x, count);
  if (node.hasFailed())
    return;
  // What is left over by known extents is one itself.
  auto isComputed = [](const SizeElement &element) { return element.value; };
  if (llvm::count_if(shape, isComputed) == 1) {
    graph::Extents others;
    for (const SizeElement &element : shape)
      if (!element.value)
        others.push_back(element.known);
    if (Size rest = node.getSizes().divideProducts(source, others)) {
      SizeElement &open = *llvm::find_if(shape, isComputed);
      node.require(node.compare(CompareKind::eq, open.value, node.size(*rest)),
                   "the shape has another number of elements than the input");
      open = {*rest, nullptr};
    }
  }
  if (llvm::any_of(shape, isComputed))
    return node.setResult(0,
                          reshapeChecked(node, x, shape, node.getResultName()));
  graph::Extents extents;
  for (const SizeElement &element : shape)
    extents.push_back(element.known);
  node.setResult(0, node.reshape(x, extents));
}

// --- Repetition --------------------------------------------------------------

void expandAtRunTime(Node &node) {
  Value x = node.input(0);
  SmallVector<SizeElement> shape = node.elements(node.input(1));
  if (!x || node.hasFailed())
    return;
  graph::Extents source = node.extents(x);
  AffineExpr one = node.getSizes().constant(1);
  size_t rank = std::max(source.size(), shape.size());
  shape.insert(shape.begin(), rank - shape.size(), {one, nullptr});
  source.insert(source.begin(), rank - source.size(), one);
  for (auto [own, element] : llvm::zip_equal(source, shape)) {
    if (graph::getConstant(own) == 1)
      continue;
    Value extent = node.scalar(element);
    if (element.value)
      node.require(
          logicalOr(node, isEqual(node, extent, 1),
                    node.compare(CompareKind::eq, extent, node.size(own))),
          "the input does not broadcast to the shape");
    else if (graph::getConstant(element.known) != 1 &&
             !graph::isEqual(element.known, own))
      return (void)node.fail("the input does not broadcast to the shape");
    element = {own, nullptr};
  }
  graph::Extents extents =
      node.readShape(shape, node.getResultName(), kUsualElements);
  node.setResult(0, node.broadcast(x, extents));
}

void tileAtRunTime(Node &node) {
  Value x = node.input(0);
  SmallVector<SizeElement> repeats = node.elements(node.input(1));
  if (!x || node.hasFailed())
    return;
  if (int64_t(repeats.size()) != node.rank(x))
    return (void)node.fail("one repeat an axis is expected");
  int64_t most = kUsualElements / std::max<int64_t>(countElements(node, x), 1);
  graph::Extents counts =
      node.readShape(repeats, node.getResultName(), std::max<int64_t>(most, 1));
  node.setResult(0, tile(node, x, counts));
}

void fillAtRunTime(Node &node, Value scalar) {
  SmallVector<SizeElement> shape = node.elements(node.input(0));
  if (node.hasFailed())
    return;
  graph::Extents extents =
      node.readShape(shape, node.getResultName(), kUsualElements);
  node.setResult(0, node.broadcast(scalar, extents));
}

/// ceil((limit - start) / delta), at least 0.
static Value countSteps(Node &node, Value start, Value limit, Value delta) {
  Type type = node.elementType(delta);
  if (isa<FloatType>(type)) {
    Type f64 = Float64Type::get(node.getContext());
    Value span = node.sub(node.cast(limit, f64), node.cast(start, f64));
    Value steps =
        node.create<graph::CeilOp>({node.div(span, node.cast(delta, f64))});
    return node.cast(node.max(steps, node.constant(0, f64)),
                     getIndexType(node));
  }
  Value span = node.sub(node.cast(limit, getIndexType(node)),
                        node.cast(start, getIndexType(node)));
  Value step = node.cast(delta, getIndexType(node));
  Value isUp = node.compare(CompareKind::gt, step, index(node, 0));
  Value size = node.max(node.select(isUp, step, node.sub(index(node, 0), step)),
                        index(node, 1));
  span = node.max(node.select(isUp, span, node.sub(index(node, 0), span)),
                  index(node, 0));
  return node.div(node.add(span, node.sub(size, index(node, 1))), size);
}

void rangeAtRunTime(Node &node) {
  Value scalars[3];
  for (int64_t i = 0; i < 3; ++i)
    scalars[i] = node.reshape(node.input(i), {});
  if (node.hasFailed())
    return;
  Type type = node.elementType(0);
  node.require(node.compare(CompareKind::ne, scalars[2],
                            node.constantLike(0, scalars[2])),
               "the step of a range is 0");
  AffineExpr extent = node.readSize(
      {AffineExpr(), countSteps(node, scalars[0], scalars[1], scalars[2])},
      node.getResultName(), kUsualExtent);
  // Narrow floats are counted in f32.
  Type wide = type.getIntOrFloatBitWidth() < 32 && isa<FloatType>(type)
                  ? Float32Type::get(node.getContext())
                  : type;
  Value steps =
      node.mul(node.iota({extent}, 0, wide), node.cast(scalars[2], wide));
  node.setResult(0,
                 node.cast(node.add(steps, node.cast(scalars[0], wide)), type));
}

// --- Axes --------------------------------------------------------------------

/// For each axis of `rank` whether it is among input `i`, a list of axes.
static SmallVector<Value> findAxes(Node &node, int64_t i, int64_t rank,
                                   int64_t &count) {
  SmallVector<SizeElement> axes = node.elements(node.input(i));
  count = axes.size();
  SmallVector<Value> isAmong(rank);
  for (const SizeElement &element : axes) {
    Value axis = node.scalar(element);
    requireAxis(node, axis, rank);
    for (int64_t own = 0; own < rank; ++own)
      isAmong[own] =
          logicalOr(node, isAmong[own], isAxis(node, axis, own, rank));
  }
  return isAmong;
}

/// The extents of `x` in order, of the axes of which `isKept` is true.
static SmallVector<SizeElement> pickExtents(Node &node, ArrayRef<Value> extents,
                                            ArrayRef<Value> isKept,
                                            int64_t count) {
  SmallVector<SizeElement> picked(count);
  for (auto [position, element] : llvm::enumerate(picked)) {
    Value found = index(node, 0), before = index(node, 0);
    for (auto [extent, kept] : llvm::zip_equal(extents, isKept)) {
      Value isHere =
          node.create<graph::AndOp>({kept, isEqual(node, before, position)});
      found = node.select(isHere, extent, found);
      before = node.add(before, node.cast(kept, getIndexType(node)));
    }
    element.value = found;
  }
  return picked;
}

static Value invert(Node &node, Value condition) {
  return node.create<graph::NotOp>(condition);
}

Value dropAxesAtRunTime(Node &node, Value x, ArrayRef<Value> isDropped,
                        int64_t count) {
  if (count > int64_t(isDropped.size()))
    return node.fail("there are more axes than the input has");
  SmallVector<Value> extents, isKept;
  for (AffineExpr extent : node.extents(x))
    extents.push_back(node.size(extent));
  for (Value dropped : isDropped)
    isKept.push_back(invert(node, dropped));
  SmallVector<SizeElement> shape =
      pickExtents(node, extents, isKept, isDropped.size() - count);
  return node.hasFailed()
             ? nullptr
             : reshapeChecked(node, x, shape, node.getResultName());
}

void squeezeAtRunTime(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  int64_t count = 0;
  SmallVector<Value> isDropped = findAxes(node, 1, node.rank(x), count);
  node.setResult(0, dropAxesAtRunTime(node, x, isDropped, count));
}

void unsqueezeAtRunTime(Node &node) {
  Value x = node.input(0);
  auto list = x ? node.type(1) : RankedTensorType();
  if (!x || !list.hasStaticShape())
    return (void)node.unsupported("a list of axes of unknown length");
  int64_t rank = node.rank(x) + list.getNumElements(), count = 0;
  SmallVector<Value> isNew = findAxes(node, 1, rank, count);
  Value before = index(node, 0);
  SmallVector<SizeElement> shape;
  for (Value inserted : isNew) {
    Value extent = index(node, 1);
    for (auto [axis, own] : llvm::enumerate(node.extents(x)))
      extent = node.select(isEqual(node, before, axis), node.size(own), extent);
    shape.push_back(
        {AffineExpr(), node.select(inserted, index(node, 1), extent)});
    before =
        node.add(before, node.cast(invert(node, inserted), getIndexType(node)));
  }
  if (!node.hasFailed())
    node.setResult(0, reshapeChecked(node, x, shape, node.getResultName()));
}

SplitAxes splitAxesAtRunTime(Node &node, Value x, int64_t axesInput) {
  SplitAxes split;
  int64_t count = 0;
  split.isReduced = findAxes(node, axesInput, node.rank(x), count);
  SmallVector<SizeElement> shape;
  for (auto [extent, isReduced] :
       llvm::zip_equal(node.extents(x), split.isReduced)) {
    Value whole = node.size(extent), one = index(node, 1);
    int64_t most = std::max<int64_t>(node.getSizes().getRange(extent).max, 1);
    split.reducedAxes.push_back(shape.size() + 1);
    shape.push_back({AffineExpr(), node.select(isReduced, one, whole), most});
    shape.push_back({AffineExpr(), node.select(isReduced, whole, one), most});
  }
  if (node.hasFailed())
    return split;
  std::string name = node.getResultName();
  split.x = reshapeChecked(node, x, shape, name);
  if (!split.x)
    return split;
  graph::Extents extents = node.extents(split.x);
  for (size_t axis = 0; axis < extents.size(); axis += 2)
    split.kept.push_back(extents[axis]);
  return split;
}

Value joinAroundAxisAtRunTime(Node &node, Value x, int64_t i) {
  int64_t count = 0, rank = node.rank(x);
  SmallVector<Value> isChosen = findAxes(node, i, rank, count);
  if (node.hasFailed() || count != 1)
    return node.fail("one axis is expected");
  SmallVector<SizeElement> shape(3, {AffineExpr(), index(node, 1)});
  Value isBehind = node.constant(0, IntegerType::get(node.getContext(), 1));
  for (auto [extent, isHere] : llvm::zip_equal(node.extents(x), isChosen)) {
    Value own = node.size(extent);
    shape[1].value = node.select(isHere, own, shape[1].value);
    shape[2].value =
        node.mul(shape[2].value, node.select(isBehind, own, index(node, 1)));
    isBehind = logicalOr(node, isBehind, isHere);
    shape[0].value =
        node.mul(shape[0].value, node.select(isBehind, index(node, 1), own));
  }
  return reshapeChecked(node, x, shape, node.getResultName());
}

} // namespace tcc::onnx_import
