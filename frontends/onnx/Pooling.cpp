#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"
#include "frontends/onnx/Window.h"

using namespace mlir;
using tcc::graph::CompareKind;
using tcc::graph::PoolKind;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

template <PoolKind kind> static void importPool(Node &node) {
  Value x = node.input(0);
  if (auto window = readWindow(node, x))
    node.setResult(0, emitPool(node, kind, x, *window));
}

// --- Indices of the largest elements -----------------------------------------

namespace {

/// The largest element so far, and where it lies; -1 for none.
struct Largest {
  Value element, position;
};

} // namespace

/// Elements from one axis' index to the next in the order that positions count.
static SmallVector<Size> getPositionSteps(Node &node, Value x) {
  int64_t rank = node.rank(x);
  bool isColumnMajor = node.intAttr("storage_order", 0) != 0;
  graph::Extents extents = node.extents(x);
  SmallVector<Size> steps(rank);
  graph::Extents inner;
  for (int64_t i = 2; i < rank; ++i) {
    int64_t axis = isColumnMajor ? i : rank + 1 - i;
    steps[axis] = node.getSizes().product(inner);
    inner.push_back(extents[axis]);
  }
  for (int64_t axis : {1, 0}) {
    steps[axis] = node.getSizes().product(inner);
    inner.push_back(extents[axis]);
  }
  return steps;
}

/// The elements of x at `tap` of each window, their positions, and whether they
/// lie inside x. `type` is the result's.
static void addTap(Node &node, Value x, Value padded, RankedTensorType type,
                   const Window &window, ArrayRef<int64_t> tap,
                   Largest &largest) {
  Type index = IntegerType::get(node.getContext(), 64);
  SmallVector<Size> steps = getPositionSteps(node, x);
  graph::Extents result = graph::getExtents(type);
  Value element = padded, position, isInside;
  for (int64_t axis = 0; axis < type.getRank(); ++axis) {
    if (!steps[axis])
      return (void)node.fail("the input is too large");
    graph::Extents along(type.getRank(), node.getSizes().constant(1));
    along[axis] = result[axis];
    Value own = node.iota(along, axis, index);
    if (int64_t i = axis - 2; i >= 0) {
      int64_t offset = tap[i] * window.dilations[i];
      element = node.slice(element, axis, node.getSizes().constant(offset),
                           result[axis], window.strides[i]);
      own = node.mul(own, node.constant(double(window.strides[i]), index));
      own = node.add(own, node.constant(double(offset - window.low[i]), index));
      Value fits = node.pointwise<graph::AndOp>(
          {node.compare(CompareKind::ge, own, node.constant(0, index)),
           node.compare(CompareKind::lt, own,
                        node.size(graph::getExtent(x, axis)))});
      isInside =
          isInside ? node.pointwise<graph::AndOp>({isInside, fits}) : fits;
    }
    own = node.mul(own, node.size(*steps[axis]));
    position = position ? node.add(position, own) : own;
  }
  Value isFirst =
      node.compare(CompareKind::lt, largest.position, node.constant(0, index));
  Value isLarger = node.compare(CompareKind::gt, element, largest.element);
  Value isTaken = node.pointwise<graph::AndOp>(
      {isInside, node.pointwise<graph::OrOp>({isFirst, isLarger})});
  largest.element = node.select(isTaken, element, largest.element);
  largest.position = node.select(isTaken, position, largest.position);
}

/// Where in x the largest element of each window lies, the first of equal ones.
static Value emitPositions(Node &node, Value x, RankedTensorType type,
                           const Window &window) {
  constexpr int64_t kMaxTaps = 256;
  int64_t taps = 1;
  for (int64_t extent : window.extents) {
    taps = std::min<int64_t>(extent, kMaxTaps + 1) * taps;
    if (taps > kMaxTaps)
      return node.unsupported("the output of indices for windows of more than "
                              "256 elements");
  }
  SmallVector<int64_t> low = {0, 0}, high = {0, 0};
  low.append(window.low);
  high.append(window.high);
  Value padded = node.pad(x, node.constantLike(0, x), low, high);
  Type index = IntegerType::get(node.getContext(), 64);
  graph::Extents extents = graph::getExtents(type);
  Largest largest = {node.broadcast(node.constantLike(0, x), extents),
                     node.broadcast(node.constant(-1, index), extents)};
  SmallVector<int64_t> tap(window.getRank(), 0);
  for (int64_t i = 0; i < taps && !node.hasFailed(); ++i) {
    int64_t rest = i;
    for (int64_t axis = window.getRank() - 1; axis >= 0; --axis) {
      tap[axis] = rest % window.extents[axis];
      rest /= window.extents[axis];
    }
    addTap(node, x, padded, type, window, tap, largest);
  }
  return largest.position;
}

static void importMaxPool(Node &node) {
  Value x = node.input(0);
  auto window = readWindow(node, x);
  if (!window)
    return;
  Value result = emitPool(node, PoolKind::max, x, *window);
  node.setResult(0, result);
  if (result && node.hasOutput(1))
    node.setResult(1, emitPositions(node, x,
                                    cast<RankedTensorType>(result.getType()),
                                    *window));
}

/// x with zeros behind it, in the shape that input 2 asks for.
static Value extendAtRunTime(Node &node, Value x) {
  SmallVector<SizeElement> shape = node.elements(node.input(2));
  if (!node.hasFailed() && int64_t(shape.size()) != node.rank(x))
    return node.fail("output_shape does not hold the result");
  if (!x || node.hasFailed())
    return nullptr;
  for (auto [own, wanted] : llvm::zip_equal(node.extents(x), shape))
    node.require(node.compare(graph::CompareKind::ge, node.scalar(wanted),
                              node.size(own)),
                 "output_shape does not hold the result");
  SmallVector<Value> low(shape.size(), index(node, 0));
  return padToAtRunTime(node, x, shape, low, node.constantLike(0, x));
}

/// Elements put back where MaxPool found them, zeros elsewhere.
static void importMaxUnpool(Node &node) {
  Value x = node.input(0), positions = node.input(1);
  auto window = readWindowAttributes(node, node.rank(x) - 2, {});
  if (!x || !positions || !window)
    return;
  graph::Extents extents = node.extents(x);
  for (int64_t i = 0; i < window->getRank(); ++i)
    extents[i + 2] = (extents[i + 2] - 1) * window->strides[i] +
                     window->extents[i] - window->low[i] - window->high[i];
  Size count = node.getSizes().product(node.extents(x));
  Size all = node.getSizes().product(extents);
  if (!count || !all)
    return (void)node.fail("the result is too large");
  Value zeros = node.broadcast(node.constantLike(0, x), *all);
  auto kind =
      graph::ScatterKindAttr::get(node.getContext(), graph::ScatterKind::none);
  Value filled = node.create<graph::ScatterElementsOp>(
      {zeros, node.reshape(positions, *count), node.reshape(x, *count)},
      {node.attr("axis", 0L), node.attr("kind", kind)});
  Value result = node.reshape(filled, extents);
  if (!node.hasInput(2))
    return node.setResult(0, result);
  if (node.isComputed(2))
    return node.setResult(0, extendAtRunTime(node, result));
  auto shape = node.requireInts(2, "output_shape");
  if (!shape)
    return;
  SmallVector<int64_t> low(extents.size(), 0), high(low);
  for (auto [axis, extent] : llvm::enumerate(extents)) {
    auto known = graph::getConstant(extent);
    if (shape->size() != extents.size() || !known || (*shape)[axis] < *known ||
        (*shape)[axis] > kMaxElements)
      return (void)node.fail("output_shape does not hold the result");
    high[axis] = (*shape)[axis] - *known;
  }
  node.setResult(0, node.pad(result, node.constantLike(0, x), low, high));
}

// --- Powers ------------------------------------------------------------------

/// |sum |x|^p|^(1/p)
static Value emitPower(Node &node, Value x, double exponent) {
  return node.pointwise<graph::PowOp>({x, node.constantLike(exponent, x)});
}

/// The p-norm from the sum of powers. The root's slope at 0 is infinite, the
/// norm's is taken as 0.
static Value emitRoot(Node &node, Value sum, double p) {
  Value zero = node.constantLike(0, sum);
  Value isZero = node.compare(graph::CompareKind::eq, sum, zero);
  Value inner = node.select(isZero, node.constantLike(1, sum), sum);
  return node.select(isZero, zero, emitPower(node, inner, 1 / p));
}

static void importLpPool(Node &node) {
  Value x = node.input(0);
  double p = double(node.intAttr("p", 2));
  auto window = readWindow(node, x);
  if (!window)
    return;
  Value powers = emitPower(node, node.create<graph::AbsOp>(x), p);
  Value sums = emitPool(node, PoolKind::sum, powers, *window);
  node.setResult(0, emitRoot(node, sums, p));
}

static SmallVector<int64_t> getSpatialAxes(Node &node, Value x) {
  SmallVector<int64_t> axes;
  for (int64_t axis = 2; axis < node.rank(x); ++axis)
    axes.push_back(axis);
  return axes;
}

static void importGlobalAveragePool(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  SmallVector<int64_t> axes = getSpatialAxes(node, x);
  graph::Extents reduced;
  for (int64_t axis : axes)
    reduced.push_back(graph::getExtent(x, axis));
  node.setResult(0, node.div(node.reduce(ReduceKind::sum, x, axes, true),
                             node.countLike(reduced, x)));
}

static void importGlobalMaxPool(Node &node) {
  Value x = node.input(0);
  node.setResult(
      0, node.reduce(ReduceKind::max, x, getSpatialAxes(node, x), true));
}

static void importGlobalLpPool(Node &node) {
  Value x = node.input(0);
  double p = double(node.intAttr("p", 2));
  Value powers = emitPower(node, node.create<graph::AbsOp>(x), p);
  Value sums =
      node.reduce(ReduceKind::sum, powers, getSpatialAxes(node, x), true);
  node.setResult(0, emitRoot(node, sums, p));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"AveragePool", 7, last, importPool<PoolKind::average>},
    {"GlobalAveragePool", 1, last, importGlobalAveragePool},
    {"GlobalLpPool", 2, last, importGlobalLpPool},
    {"GlobalMaxPool", 1, last, importGlobalMaxPool},
    {"LpPool", 2, last, importLpPool},
    {"MaxPool", 1, last, importMaxPool},
    {"MaxUnpool", 9, last, importMaxUnpool},
};

ArrayRef<OpRow> getPoolingOps() { return rows; }

} // namespace tcc::onnx_import
