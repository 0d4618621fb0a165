//===- RuntimeSlices.cpp - Parts and borders that a run computes ----------===//
#include "frontends/onnx/RuntimeShapes.h"

#include "mlir/IR/Matchers.h"

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

static Value clampIndex(Node &node, Value x, Value low, Value high) {
  return node.max(node.min(x, high), low);
}

static Value isBelow(Node &node, Value x, int64_t bound) {
  return node.compare(CompareKind::lt, x, index(node, bound));
}

// --- Split -------------------------------------------------------------------

SmallVector<Value> cutAtRunTime(Node &node, int64_t axis,
                                ArrayRef<SizeElement> parts,
                                ArrayRef<std::string> names) {
  Value x = node.input(0);
  if (!x || node.hasFailed())
    return {};
  AffineExpr extent = graph::getExtent(x, axis);
  int64_t most = node.getSizes().getRange(extent).max;
  Value whole = node.size(extent), zero = index(node, 0), start = zero,
        sum = zero;
  for (const SizeElement &part : parts)
    sum = node.add(sum, node.scalar(part));
  node.require(node.compare(CompareKind::eq, sum, whole),
               "the parts of a split are not as long as its input");
  SmallVector<Value> cut;
  for (auto [part, name] : llvm::zip_equal(parts, names)) {
    Value count =
        clampIndex(node, node.scalar(part), zero, node.sub(whole, start));
    AffineExpr first =
        node.readSize({AffineExpr(), start}, name + ".start", most);
    AffineExpr size = node.readSize({AffineExpr(), count}, name, most);
    cut.push_back(node.slice(x, axis, first, size));
    start = node.add(start, count);
  }
  return cut;
}

void splitAtRunTime(Node &node, int64_t axis) {
  SmallVector<SizeElement> parts = node.elements(node.input(1));
  if (node.hasFailed())
    return;
  if (int64_t(parts.size()) != node.getNumOutputs())
    return (void)node.fail("split must have one entry an output");
  SmallVector<std::string> names;
  for (size_t i = 0; i < parts.size(); ++i)
    names.push_back(node.getResultName(i));
  for (auto [i, part] : llvm::enumerate(cutAtRunTime(node, axis, parts, names)))
    node.setResult(i, part);
}

// --- Slice -------------------------------------------------------------------

namespace {

/// What a Slice node says of one axis, i64 scalars.
struct Bounds {
  Value start, end, step;
};

} // namespace

/// The elements of `list`, each at the axis that `axes` gives it; `otherwise`
/// at the other axes.
static SmallVector<Value> spread(Node &node, ArrayRef<SizeElement> list,
                                 ArrayRef<SizeElement> axes, int64_t rank,
                                 ArrayRef<Value> otherwise) {
  SmallVector<Value> spread(otherwise);
  for (auto [element, axis] : llvm::zip_equal(list, axes)) {
    Value value = node.scalar(element);
    auto known = axis.value ? std::nullopt : graph::getConstant(axis.known);
    for (int64_t own = 0; own < rank; ++own) {
      if (known) {
        if (*known == own || *known == own - rank)
          spread[own] = value;
        continue;
      }
      spread[own] =
          node.select(isAxis(node, axis.value, own, rank), value, spread[own]);
    }
  }
  return spread;
}

/// Input `i`, or 0, 1, 2...
static SmallVector<SizeElement> readAxes(Node &node, int64_t i, int64_t rank,
                                         size_t count) {
  if (node.hasInput(i)) {
    SmallVector<SizeElement> axes = node.elements(node.input(i));
    for (const SizeElement &axis : axes) {
      auto known = axis.value ? std::nullopt : graph::getConstant(axis.known);
      if (known)
        node.axis(*known, rank);
      else if (axis.value)
        requireAxis(node, axis.value, rank);
    }
    return axes;
  }
  SmallVector<SizeElement> axes;
  for (size_t axis = 0; axis < count; ++axis)
    axes.push_back({node.getSizes().constant(axis), nullptr});
  return axes;
}

/// The bounds of each axis; null values where the node does not slice it.
static SmallVector<Bounds> readBounds(Node &node, int64_t rank) {
  SmallVector<SizeElement> starts = node.elements(node.input(1)),
                           ends = node.elements(node.input(2)), steps;
  SmallVector<SizeElement> axes = readAxes(node, 3, rank, starts.size());
  SizeElement one{node.getSizes().constant(1), nullptr};
  steps.assign(starts.size(), one);
  if (node.hasInput(4))
    steps = node.elements(node.input(4));
  if (!node.hasFailed() &&
      (starts.size() != ends.size() || starts.size() != axes.size() ||
       starts.size() != steps.size()))
    node.fail("starts, ends, axes and steps do not fit together");
  if (node.hasFailed())
    return {};
  bool areAxesKnown =
      llvm::none_of(axes, [](const SizeElement &axis) { return axis.value; });
  auto fill = [&](int64_t value) {
    return SmallVector<Value>(rank,
                              areAxesKnown ? Value() : index(node, value));
  };
  SmallVector<Value> start = spread(node, starts, axes, rank, fill(0)),
                     end = spread(node, ends, axes, rank, fill(INT64_MAX)),
                     step = spread(node, steps, axes, rank, fill(1));
  SmallVector<Bounds> bounds;
  for (int64_t axis = 0; axis < rank; ++axis)
    bounds.push_back({start[axis], end[axis], step[axis]});
  return bounds;
}

/// Counts a negative position from the end.
static Value fromEnd(Node &node, Value position, Value extent) {
  return node.select(isBelow(node, position, 0), node.add(position, extent),
                     position);
}

namespace {

/// The elements start + i * step of an axis; null values for all of them.
struct Cut {
  Value start, step, count;
  bool hasUnitStep = true;
};

} // namespace

/// The elements of an axis that lie within the bounds.
static Cut cut(Node &node, AffineExpr extent, const Bounds &bounds) {
  Value whole = node.size(extent), zero = index(node, 0);
  Value last = node.sub(whole, index(node, 1));
  Value isDown = isBelow(node, bounds.step, 0);
  node.require(node.compare(CompareKind::ne, bounds.step, zero),
               "the step of a slice is 0");
  // A step beyond all elements is one as good as another.
  Value step = clampIndex(node, bounds.step, index(node, -kMaxElements),
                          index(node, kMaxElements));
  Value size =
      node.max(node.select(isDown, node.sub(zero, step), step), index(node, 1));
  auto clamp = [&](Value position) {
    Value counted = fromEnd(node, position, whole);
    return node.select(isDown, clampIndex(node, counted, index(node, -1), last),
                       clampIndex(node, counted, zero, whole));
  };
  Value start = clamp(bounds.start), end = clamp(bounds.end);
  Value span = node.select(isDown, node.sub(start, end), node.sub(end, start));
  span = node.max(span, zero);
  Value count = node.div(node.add(span, node.sub(size, index(node, 1))), size);
  DenseIntElementsAttr known;
  bool hasUnitStep = bounds.step &&
                     matchPattern(bounds.step, m_Constant(&known)) &&
                     *known.value_begin<APInt>() == 1;
  if (hasUnitStep)
    start = node.min(start, node.sub(whole, count));
  return {start, step, count, hasUnitStep};
}

static Value cutAxis(Node &node, Value x, int64_t axis, const Cut &cut,
                     StringRef name) {
  int64_t most = node.getSizes().getRange(graph::getExtent(x, axis)).max;
  AffineExpr result = node.readSize({AffineExpr(), cut.count}, name, most);
  if (node.hasFailed())
    return nullptr;
  if (cut.hasUnitStep) {
    AffineExpr first =
        node.readSize({AffineExpr(), cut.start}, (name + ".start").str(), most);
    return node.slice(x, axis, first, result);
  }
  Value steps = node.iota({result}, 0, node.elementType(cut.start));
  return node.gather(x, node.add(node.mul(steps, cut.step), cut.start), axis);
}

/// Cuts all axes at once: where computed extents have a bound together, some of
/// them with some of the result's have none.
static Value cutTogether(Node &node, Value x, ArrayRef<Cut> cuts) {
  SmallVector<SizeElement> shape;
  for (auto [extent, cut] : llvm::zip_equal(node.extents(x), cuts))
    shape.push_back({extent, cut.count});
  graph::Extents result =
      node.readShape(shape, node.getResultName(), countElements(node, x));
  Value place = index(node, 0);
  if (node.hasFailed())
    return nullptr;
  for (auto [axis, cut] : llvm::enumerate(cuts)) {
    Value at = node.iota(result, axis, node.elementType(place));
    if (cut.start)
      at = node.add(node.mul(at, cut.step), cut.start);
    place = node.add(node.mul(place, node.size(graph::getExtent(x, axis))), at);
  }
  return node.gather(flatten(node, x), place, 0);
}

void sliceAtRunTime(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  SmallVector<Bounds> bounds = readBounds(node, node.rank(x));
  SmallVector<Cut> cuts;
  bool isComputed = false;
  for (auto [extent, own] : llvm::zip(node.extents(x), bounds)) {
    cuts.push_back(own.start ? cut(node, extent, own) : Cut());
    isComputed |= graph::isComputed(extent, node.getSizes().getSymbols());
  }
  if (node.hasFailed())
    return;
  if (isComputed)
    return node.setResult(0, cutTogether(node, x, cuts));
  for (auto [axis, own] : llvm::enumerate(cuts))
    if (own.start && x)
      x = cutAxis(node, x, axis, own,
                  node.getResultName() + "." + std::to_string(axis));
  node.setResult(0, x);
}

// --- Pad ---------------------------------------------------------------------

/// The element of an axis of `extent` elements that position `at` of the padded
/// axis has, counted from the first one of x.
static Value mapPosition(Node &node, Value at, Value extent,
                         graph::PadMode mode) {
  Value zero = index(node, 0), one = index(node, 1);
  Value last = node.max(node.sub(extent, one), zero);
  auto wrap = [&](Value position, Value period) {
    Value rest = node.create<graph::ModOp>(
        node.broadcastTogether({position, node.max(period, one)}));
    return rest;
  };
  if (mode == graph::PadMode::wrap)
    at = wrap(at, extent);
  if (mode == graph::PadMode::reflect) {
    Value period = node.mul(last, index(node, 2));
    at = wrap(at, period);
    at = node.min(at, node.sub(period, at));
  }
  return clampIndex(node, at, zero, last);
}

/// x in `extents`: element `low` of each axis is the first of x.
static Value padTo(Node &node, Value x, ArrayRef<AffineExpr> extents,
                   ArrayRef<Value> low, Value fill, graph::PadMode mode) {
  Value zero = index(node, 0), place = zero, isInside;
  if (node.hasFailed())
    return nullptr;
  for (auto [axis, own] : llvm::enumerate(node.extents(x))) {
    Value whole = node.size(own);
    Value at =
        node.sub(node.iota(extents, axis, node.elementType(zero)), low[axis]);
    place =
        node.add(node.mul(place, whole), mapPosition(node, at, whole, mode));
    Value isHere = node.create<graph::AndOp>(
        node.broadcastTogether({node.compare(CompareKind::ge, at, zero),
                                node.compare(CompareKind::lt, at, whole)}));
    isInside =
        isInside ? node.create<graph::AndOp>({isInside, isHere}) : isHere;
  }
  Value moved = node.gather(flatten(node, x), place, 0);
  return mode == graph::PadMode::constant ? node.select(isInside, moved, fill)
                                          : moved;
}

Value padToAtRunTime(Node &node, Value x, ArrayRef<SizeElement> shape,
                     ArrayRef<Value> low, Value fill, graph::PadMode mode) {
  graph::Extents extents =
      node.readShape(shape, node.getResultName(), kUsualElements);
  return node.hasFailed() ? nullptr : padTo(node, x, extents, low, fill, mode);
}

void padAtRunTime(Node &node) {
  Value x = node.input(0);
  SmallVector<SizeElement> pads = node.elements(node.input(1));
  auto mode = graph::symbolizePadMode(node.stringAttr("mode", "constant"));
  if (!mode)
    return (void)node.fail("mode is unknown");
  if (!x || node.hasFailed())
    return;
  int64_t rank = node.rank(x);
  SmallVector<SizeElement> axes = readAxes(node, 3, rank, rank);
  if (!node.hasFailed() && pads.size() != 2 * axes.size())
    node.fail("pads are malformed");
  Value fill = node.hasInput(2) ? node.reshape(node.input(2), {})
                                : node.constantLike(0, x);
  if (node.hasFailed())
    return;
  SmallVector<Value> none(rank, index(node, 0));
  SmallVector<Value> low =
      spread(node, ArrayRef(pads).take_front(axes.size()), axes, rank, none);
  SmallVector<Value> high =
      spread(node, ArrayRef(pads).drop_front(axes.size()), axes, rank, none);
  auto isZero = [](Value value) {
    DenseIntElementsAttr known;
    return value && matchPattern(value, m_Constant(&known)) &&
           known.isSplat() && known.getSplatValue<APInt>().isZero();
  };
  SmallVector<SizeElement> shape;
  for (int64_t axis = 0; axis < rank; ++axis) {
    AffineExpr extent = graph::getExtent(x, axis);
    bool isSame = isZero(low[axis]) && isZero(high[axis]);
    shape.push_back({extent, isSame ? Value()
                                    : node.add(node.add(low[axis], high[axis]),
                                               node.size(extent))});
  }
  node.setResult(0, padToAtRunTime(node, x, shape, low, fill, *mode));
}

} // namespace tcc::onnx_import
