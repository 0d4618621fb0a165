//===- ResizeTaps.cpp - What elements of a resized axis are made of -------===//
#include "frontends/onnx/ResizeTaps.h"

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

namespace {

/// Counts and coordinates along an axis, in f64.
struct Line {
  AffineExpr resultExtent;
  Value input, last, result; // extents, and that of the input less 1
};

} // namespace

static Type getReal(Node &node) { return Float64Type::get(node.getContext()); }

Value real(Node &node, double value) {
  return node.constant(value, getReal(node));
}

Value floorToIndex(Node &node, Value x) {
  return node.cast(node.create<graph::FloorOp>(x),
                   IntegerType::get(node.getContext(), 64));
}

// --- Coordinates -------------------------------------------------------------

/// Where each result element lies in the input, [result, 1].
static Value findCoordinates(Node &node, const ResizeOptions &options,
                             const AxisResize &resize, const Line &line) {
  const std::string &mode = options.coordinates;
  Value i = node.iota({line.resultExtent, node.getSizes().constant(1)}, 0,
                      getReal(node));
  Value one = real(node, 1), half = real(node, 0.5);
  // A single element is element 0.
  Value steps = node.max(node.sub(line.result, one), one);
  if (mode == "asymmetric")
    return node.div(i, resize.scale);
  if (mode == "align_corners")
    return node.div(node.mul(i, line.last), steps);
  if (options.isCropped()) {
    Value start = node.mul(resize.cropStart, line.last);
    Value span =
        node.mul(node.sub(resize.cropEnd, resize.cropStart), line.last);
    Value middle = node.mul(
        node.mul(half, node.add(resize.cropStart, resize.cropEnd)), line.last);
    Value isSingle = node.compare(CompareKind::eq, line.result, one);
    return node.select(isSingle, middle,
                       node.add(start, node.div(node.mul(i, span), steps)));
  }
  Value x = node.sub(node.div(node.add(i, half), resize.scale), half);
  if (mode == "pytorch_half_pixel")
    return node.select(node.compare(CompareKind::le, line.result, one),
                       real(node, 0), x);
  if (mode != "half_pixel_symmetric")
    return x;
  Value exact = node.mul(resize.scale, line.input);
  Value part = node.sub(one, node.div(line.result, exact));
  return node.add(node.mul(node.mul(line.input, half), part), x);
}

static Value roundNearest(Node &node, const std::string &mode, Value x) {
  Value half = real(node, 0.5);
  if (mode == "round_prefer_ceil")
    return node.create<graph::FloorOp>(node.add(x, half));
  if (mode == "floor")
    return node.create<graph::FloorOp>(x);
  if (mode == "ceil")
    return node.create<graph::CeilOp>(x);
  return node.create<graph::CeilOp>(node.sub(x, half)); // round_prefer_floor
}

// --- Taps --------------------------------------------------------------------

/// (((c[0] d + c[1]) d + c[2]) d + ...
static Value evaluatePolynomial(Node &node, Value d, ArrayRef<double> c) {
  Value sum = real(node, c[0]);
  for (double coefficient : c.drop_front())
    sum = node.add(node.mul(sum, d), real(node, coefficient));
  return sum;
}

/// The weight of elements at a distance `d`, none of them negative.
static Value findWeights(Node &node, const ResizeOptions &options, Value d) {
  Value zero = real(node, 0), one = real(node, 1);
  if (options.mode == "linear")
    return node.max(zero, node.sub(one, d));
  double a = options.cubicA;
  Value near = evaluatePolynomial(node, d, {a + 2, -(a + 3), 0, 1});
  Value far = evaluatePolynomial(node, d, {a, -5 * a, 8 * a, -4 * a});
  far = node.select(node.compare(CompareKind::lt, d, real(node, 2)), far, zero);
  return node.select(node.compare(CompareKind::le, d, one), near, far);
}

/// How far apart elements count as neighbours: antialiasing widens the filter
/// where the result is smaller.
static Value findStretch(Node &node, const ResizeOptions &options,
                         const AxisResize &resize) {
  Value one = real(node, 1);
  return options.isAntialiased ? node.max(node.div(one, resize.scale), one)
                               : one;
}

/// The number of elements of an axis that an element of the result is made of.
static AffineExpr countTaps(Node &node, const ResizeOptions &options,
                            Value stretch, StringRef name) {
  if (options.mode == "nearest")
    return node.getSizes().constant(1);
  Value side = node.create<graph::CeilOp>(
      node.mul(stretch, real(node, options.getSupport())));
  // There are two or more, whatever the scale is.
  Value others = node.mul(node.sub(side, real(node, 1)), real(node, 2));
  SizeElement count = node.settle({AffineExpr(), floorToIndex(node, others)});
  if (!count.value && *graph::getConstant(count.known) + 2 > kMaxTaps)
    node.unsupported("antialiasing over more than " + llvm::Twine(kMaxTaps) +
                     " elements");
  return node.readSize(count, name, kMaxTaps - 2) + 2;
}

Taps computeTaps(Node &node, const ResizeOptions &options,
                 const AxisResize &resize, AffineExpr inExtent,
                 AffineExpr outExtent) {
  auto count = [&](AffineExpr extent) {
    return node.cast(node.size(extent), getReal(node));
  };
  Value zero = real(node, 0), one = real(node, 1), input = count(inExtent);
  Line line{outExtent, input, node.sub(input, one), count(outExtent)};
  Value x = findCoordinates(node, options, resize, line);
  Taps taps;
  Value stretch = findStretch(node, options, resize);
  taps.count =
      countTaps(node, options, stretch,
                node.getResultName() + ".taps." + std::to_string(resize.axis));
  auto either = [&](CompareKind below, CompareKind above, Value position) {
    return std::pair(node.compare(below, position, zero),
                     node.compare(above, position, line.last));
  };
  auto [isBefore, isBehind] = either(CompareKind::lt, CompareKind::gt, x);
  taps.isOutside = node.pointwise<graph::OrOp>({isBefore, isBehind});
  Value position;
  if (options.mode == "nearest") {
    position = roundNearest(node, options.nearest, x);
  } else {
    Value offset =
        node.iota({node.getSizes().constant(1), taps.count}, 1, getReal(node));
    Value before = node.sub(node.mul(count(taps.count), real(node, 0.5)), one);
    position =
        node.add(node.sub(node.create<graph::FloorOp>(x), before), offset);
    Value distance = node.create<graph::AbsOp>(node.sub(position, x));
    Value weight = findWeights(node, options, node.div(distance, stretch));
    auto [isIn, isStill] = either(CompareKind::ge, CompareKind::le, position);
    if (options.excludesOutside)
      weight = node.select(node.pointwise<graph::AndOp>({isIn, isStill}),
                           weight, zero);
    Value sum = node.reduce(graph::ReduceKind::sum, weight, {1}, true);
    Value isZero = node.compare(CompareKind::eq, sum, zero);
    taps.weight = node.div(weight, node.select(isZero, one, sum));
  }
  taps.index =
      floorToIndex(node, node.max(node.min(position, line.last), zero));
  return taps;
}

} // namespace tcc::onnx_import
