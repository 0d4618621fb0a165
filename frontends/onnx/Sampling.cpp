//===- Sampling.cpp - Elements at computed positions ----------------------===//
//
// A sample is a weighted sum of elements around a position. The elements are
// gathered from the flattened image, one gather for each of them.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Sampling.h"
#include "frontends/onnx/Ops.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

static std::optional<SampleOptions> readOptions(Node &node) {
  using I = std::optional<Interpolation>;
  using O = std::optional<Outside>;
  auto interpolation = llvm::StringSwitch<I>(node.stringAttr("mode", "linear"))
                           .Case("nearest", Interpolation::nearest)
                           .Cases("linear", "bilinear", Interpolation::linear)
                           .Cases("cubic", "bicubic", Interpolation::cubic)
                           .Default(std::nullopt);
  auto outside = llvm::StringSwitch<O>(node.stringAttr("padding_mode", "zeros"))
                     .Case("zeros", Outside::zeros)
                     .Case("border", Outside::border)
                     .Case("reflection", Outside::reflection)
                     .Default(std::nullopt);
  if (!interpolation || !outside) {
    node.fail("mode or padding_mode is unknown");
    return std::nullopt;
  }
  bool alignsCorners = node.intAttr("align_corners", 0) != 0;
  return SampleOptions{*interpolation, *outside, alignsCorners};
}

// --- Positions ---------------------------------------------------------------

static Bounds getBounds(Node &node, AffineExpr extent, bool alignsCorners,
                        Value like) {
  Value count = node.countLike({extent}, like);
  Value lastIndex = node.sub(count, node.constantLike(1, like));
  if (alignsCorners)
    return {node.constantLike(0, like), lastIndex, lastIndex};
  Value half = node.constantLike(0.5, like);
  return {node.constantLike(-0.5, like), node.sub(count, half), lastIndex};
}

static Value clampIndex(Node &node, Value x, const Bounds &bounds) {
  return node.min(node.max(x, node.constantLike(0, x)), bounds.lastIndex);
}

/// Turns x round at the bounds until it lies within them.
static Value reflect(Node &node, Value x, const Bounds &bounds) {
  Value range = node.sub(bounds.high, bounds.low);
  // A single element has no range; its index is clamped later.
  Value period = node.max(node.add(range, range), node.constantLike(1, x));
  Value distance = node.create<graph::AbsOp>(node.sub(x, bounds.low));
  Value within = node.pointwise<graph::RemOp>({distance, period});
  Value isFirstHalf = node.compare(CompareKind::le, within, range);
  return node.add(bounds.low,
                  node.select(isFirstHalf, within, node.sub(period, within)));
}

/// Positions from -1 to 1 as positions of elements.
static Value findPositions(Node &node, Value normalized,
                           const SampleOptions &options, const Bounds &bounds) {
  Value one = node.constantLike(1, normalized);
  Value half = node.constantLike(0.5, normalized);
  Value range = node.sub(bounds.high, bounds.low);
  Value x = node.add(node.mul(node.mul(node.add(normalized, one), range), half),
                     bounds.low);
  if (options.interpolation == Interpolation::nearest)
    x = node.create<graph::RoundOp>(x);
  if (options.outside == Outside::zeros)
    return x;
  // At a bound a position has the gradient of those beyond.
  Value isOutside = node.pointwise<graph::OrOp>(
      {node.compare(CompareKind::le, x, bounds.low),
       node.compare(CompareKind::ge, x, bounds.high)});
  Value moved = options.outside == Outside::border ? clampIndex(node, x, bounds)
                                                   : reflect(node, x, bounds);
  return node.select(isOutside, moved, x);
}

// --- Taps --------------------------------------------------------------------

/// Keys' cubic convolution with a = -0.75 of the distance from `part` to tap i,
/// which is up to 1 or from 1 to 2.
static Value emitCubicWeight(Node &node, Value part, int64_t i) {
  constexpr double a = -0.75;
  Value offset = node.constantLike(double(i), part);
  Value d = node.create<graph::AbsOp>(node.sub(part, offset));
  SmallVector<double> coefficients =
      i == 0 || i == 1 ? SmallVector<double>{a + 2, -(a + 3), 0, 1}
                       : SmallVector<double>{a, -5 * a, 8 * a, -4 * a};
  Value sum = node.constantLike(coefficients[0], d);
  for (double c : ArrayRef(coefficients).drop_front())
    sum = node.add(node.mul(sum, d), node.constantLike(c, d));
  return sum;
}

static Tap makeTap(Node &node, Value position, Value weight,
                   const SampleOptions &options, const Bounds &bounds) {
  Tap tap{nullptr, weight, nullptr};
  Value inside = position;
  if (options.outside == Outside::zeros)
    tap.isInside = node.pointwise<graph::AndOp>(
        {node.compare(CompareKind::ge, position,
                      node.constantLike(0, position)),
         node.compare(CompareKind::le, position, bounds.lastIndex)});
  if (options.outside == Outside::reflection)
    inside = reflect(node, position, bounds);
  tap.index = node.cast(clampIndex(node, inside, bounds),
                        IntegerType::get(node.getContext(), 64));
  return tap;
}

SmallVector<Tap> findTaps(Node &node, Value x, const SampleOptions &options,
                          const Bounds &bounds) {
  if (options.interpolation == Interpolation::nearest)
    return {makeTap(node, x, nullptr, options, bounds)};
  Value base = node.create<graph::FloorOp>(x), part = node.sub(x, base);
  bool isCubic = options.interpolation == Interpolation::cubic;
  SmallVector<Tap> taps;
  for (int64_t i = isCubic ? -1 : 0; i <= (isCubic ? 2 : 1); ++i) {
    Value offset = node.constantLike(double(i), x);
    Value weight = isCubic  ? emitCubicWeight(node, part, i)
                   : i == 1 ? part
                            : node.sub(node.constantLike(1, x), part);
    taps.push_back(
        makeTap(node, node.add(base, offset), weight, options, bounds));
  }
  return taps;
}

SmallVector<Tap> combine(Node &node, ArrayRef<Tap> outer, ArrayRef<Tap> inner,
                         AffineExpr innerExtent) {
  auto join = [&](Value a, Value b, llvm::function_ref<Value()> both) {
    return a && b ? both() : a ? a : b;
  };
  SmallVector<Tap> result;
  for (const Tap &a : outer)
    for (const Tap &b : inner) {
      Value row = node.mul(a.index, node.size(innerExtent));
      result.push_back({node.add(row, b.index),
                        join(a.weight, b.weight,
                             [&] { return node.mul(a.weight, b.weight); }),
                        join(a.isInside, b.isInside, [&] {
                          return node.pointwise<graph::AndOp>(
                              {a.isInside, b.isInside});
                        })});
    }
  return result;
}

// --- GridSample --------------------------------------------------------------

Value mergeTaps(Node &node, Value image, ArrayRef<Tap> taps, bool isMax) {
  Value merged;
  for (const Tap &tap : taps) {
    Value index = node.unsqueeze(tap.index, {1});
    if (!index)
      return nullptr;
    graph::Extents extents =
        node.withExtent(index, 1, graph::getExtent(image, 1));
    Value part = node.create<graph::GatherElementsOp>(
        {image, node.broadcast(index, extents)}, {node.attr("axis", 2L)});
    if (tap.weight)
      part = node.mul(part, node.cast(node.unsqueeze(tap.weight, {1}),
                                      node.elementType(image)));
    if (tap.isInside)
      part = node.select(node.unsqueeze(tap.isInside, {1}), part,
                         node.constantLike(0, image));
    merged = !merged ? part
             : isMax ? node.max(merged, part)
                     : node.add(merged, part);
  }
  return merged;
}

static void importGridSample(Node &node) {
  Value x = node.input(0), grid = node.input(1);
  auto options = readOptions(node);
  if (!x || !grid || !options)
    return;
  int64_t rank = node.rank(x) - 2;
  graph::Extents image = node.extents(x), places = node.extents(grid);
  if (rank < 1 || node.rank(grid) != rank + 2 ||
      graph::getConstant(places.back()) != rank)
    return (void)node.fail("an image [batch, channel, ...] and a grid of its "
                           "rank are expected");
  const Sizes &sizes = node.getSizes();
  Size count = sizes.product(ArrayRef(places).drop_front().drop_back());
  Size elements = sizes.product(ArrayRef(image).drop_front(2));
  if (!count || !elements)
    return (void)node.fail("the image or grid is too large");
  Value flatGrid = node.reshape(grid, {places[0], *count, places.back()});
  SmallVector<Tap> taps;
  for (int64_t axis = 0; axis < rank; ++axis) {
    AffineExpr extent = image[axis + 2];
    // The grid lists the last axis first.
    Value normalized =
        node.squeeze(node.slice(flatGrid, 2, rank - 1 - axis, 1), {2});
    if (!normalized)
      return;
    Bounds bounds = getBounds(node, extent, options->alignsCorners, normalized);
    Value positions = findPositions(node, normalized, *options, bounds);
    auto own = findTaps(node, positions, *options, bounds);
    taps = axis == 0 ? own : combine(node, taps, own, extent);
  }
  Value flat = node.reshape(x, {image[0], image[1], *elements});
  graph::Extents result = {image[0], image[1]};
  result.append(places.begin() + 1, places.end() - 1);
  node.setResult(
      0, node.reshape(flat ? mergeTaps(node, flat, taps) : nullptr, result));
}

// --- AffineGrid --------------------------------------------------------------

/// Positions from -1 to 1 along `axis`, at the centers of elements or from the
/// first to the last one.
static Value spreadAxis(Node &node, ArrayRef<AffineExpr> extents, int64_t axis,
                        Type type) {
  bool alignsCorners = node.intAttr("align_corners", 0) != 0;
  Type real = Float64Type::get(node.getContext());
  Value count = node.cast(node.size(extents[axis]), real);
  Value one = node.constant(1, real), two = node.constant(2, real);
  Value step = node.div(two, alignsCorners ? node.max(node.sub(count, one), one)
                                           : count);
  Value start = alignsCorners ? node.constant(-1, real)
                              : node.sub(node.div(step, two), one);
  Value index = node.iota(extents, axis, type);
  return node.add(node.mul(index, node.cast(step, type)),
                  node.cast(start, type));
}

static void importAffineGrid(Node &node) {
  Value theta = node.input(0);
  SmallVector<SizeElement> size = node.elements(node.input(1));
  if (!theta || node.hasFailed())
    return;
  int64_t rank = int64_t(size.size()) - 2;
  auto isOut = [&](const SizeElement &extent) {
    return !extent.value && node.getSizes().getRange(extent.known).min < 1;
  };
  if (rank < 1 || node.rank(theta) != 3 || llvm::any_of(size, isOut))
    return (void)node.fail("theta of rank 3 and a size are expected");
  graph::Extents outer = node.readShape(ArrayRef(size).drop_front(2),
                                        node.getResultName(), kUsualElements);
  Size count = node.getSizes().product(outer);
  if (!count)
    return (void)node.fail("the grid is too large");
  SmallVector<Value> coordinates;
  Type type = node.elementType(theta);
  for (int64_t axis = rank - 1; axis >= 0; --axis)
    coordinates.push_back(
        node.unsqueeze(spreadAxis(node, outer, axis, type), {rank}));
  graph::Extents single = outer;
  single.push_back(node.getSizes().constant(1));
  coordinates.push_back(node.broadcast(node.constant(1, type), single));
  if (node.hasFailed())
    return;
  Value base = node.reshape(node.concat(coordinates, rank),
                            {*count, node.getSizes().constant(rank + 1)});
  graph::Extents result = {graph::getExtent(theta, 0)};
  result.append(outer);
  result.push_back(node.getSizes().constant(rank));
  node.setResult(0,
                 node.reshape(node.matmul(base, theta, false, true), result));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"AffineGrid", 20, last, importAffineGrid},
    {"GridSample", 16, last, importGridSample},
};

ArrayRef<OpRow> getSamplingOps() { return rows; }

} // namespace tcc::onnx_import
