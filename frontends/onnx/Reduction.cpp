#include "frontends/onnx/Folding.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

/// What a reduction does: operands, axes and whether they stay.
struct Reduction {
  Value x;
  SmallVector<int64_t> axes;
  bool keepAxes;
  /// Axes that a run chooses: x is in other extents, and the result has its
  /// own after `finish`.
  std::optional<SplitAxes> split;
  int64_t axisCount = 0; ///< of these
};

/// Axes are an attribute before version `axesInputSince`, then input 1. nullopt
/// if the node failed or only passes its input on.
static std::optional<Reduction> readReduction(Node &node,
                                              int64_t axesInputSince) {
  Reduction reduction;
  reduction.x = node.input(0);
  reduction.keepAxes = node.intAttr("keepdims", 1) != 0;
  if (node.getVersion() >= axesInputSince && node.isComputed(1) &&
      reduction.x) {
    reduction.split = splitAxesAtRunTime(node, reduction.x, 1);
    if (node.hasFailed())
      return std::nullopt;
    reduction.axisCount = node.type(1).getNumElements();
    reduction.x = reduction.split->x;
    reduction.axes = reduction.split->reducedAxes;
    return reduction;
  }
  auto axes = node.intsAttrOrInput("axes", axesInputSince, 1);
  if (!reduction.x || node.hasFailed())
    return std::nullopt;
  int64_t rank = node.rank(reduction.x);
  if (axes && !axes->empty()) {
    reduction.axes = node.axes(*axes, rank);
  } else if (node.intAttr("noop_with_empty_axes", 0) == 0) {
    for (int64_t axis = 0; axis < rank; ++axis)
      reduction.axes.push_back(axis);
  }
  if (node.hasFailed())
    return std::nullopt;
  return reduction;
}

static Value reduce(Node &node, ReduceKind kind, const Reduction &reduction,
                    Value x) {
  return node.reduce(kind, x, reduction.axes,
                     reduction.keepAxes || reduction.split);
}

static void finish(Node &node, const Reduction &reduction, Value result) {
  if (reduction.split)
    result = node.reshape(result, reduction.split->kept);
  if (reduction.split && !reduction.keepAxes)
    result = dropAxesAtRunTime(node, result, reduction.split->isReduced,
                               reduction.axisCount);
  node.setResult(0, result);
}

static Value countReduced(Node &node, const Reduction &reduction) {
  graph::Extents reduced;
  for (int64_t axis : reduction.axes)
    reduced.push_back(graph::getExtent(reduction.x, axis));
  return node.countLike(reduced, reduction.x);
}

/// Sum, product, smallest or largest element of a known vector.
static bool foldReduce(Node &node, SizeOp op, int64_t axesInputSince) {
  auto axes = node.intsAttr("axes");
  if (node.getVersion() >= axesInputSince && node.isComputed(1))
    return false;
  if (node.getVersion() >= axesInputSince && node.hasInput(1))
    axes = node.requireInts(1, "axes");
  Tensor *source = node.tensor(0);
  if (!source || source->sequence || source->type.getRank() != 1 ||
      isa<FloatType>(source->type.getElementType()) ||
      (axes && axes->empty()) || node.hasFailed())
    return false;
  auto content = node.knownContent(0);
  if (!content || content->empty())
    return false;
  Size result = content->front();
  for (AffineExpr element : ArrayRef(*content).drop_front())
    result = result ? node.getSizes().apply(op, *result, element) : result;
  if (!result ||
      !holds(source->type.getElementType(), *result, node.getSizes()))
    return false;
  SmallVector<int64_t> shape(node.intAttr("keepdims", 1) != 0 ? 1 : 0, 1);
  node.setContent(0,
                  RankedTensorType::get(shape, source->type.getElementType()),
                  {*result});
  return true;
}

template <ReduceKind kind, SizeOp op, int64_t axesInputSince>
static void importReduce(Node &node) {
  if (foldReduce(node, op, axesInputSince))
    return;
  auto reduction = readReduction(node, axesInputSince);
  if (!reduction)
    return;
  // Booleans are combined as numbers, whose neutral elements are booleans too.
  Type type = node.elementType(reduction->x);
  Type byte = IntegerType::get(node.getContext(), 8, IntegerType::Unsigned);
  Value x = type.isInteger(1) ? node.cast(reduction->x, byte) : reduction->x;
  finish(node, *reduction, node.cast(reduce(node, kind, *reduction, x), type));
}

static void importReduceMean(Node &node) {
  auto reduction = readReduction(node, 18);
  if (!reduction)
    return;
  Value sum = reduce(node, ReduceKind::sum, *reduction, reduction->x);
  finish(node, *reduction, node.div(sum, countReduced(node, *reduction)));
}

static void importReduceL1(Node &node) {
  if (auto reduction = readReduction(node, 18))
    finish(node, *reduction,
           reduce(node, ReduceKind::sum, *reduction,
                  node.create<graph::AbsOp>(reduction->x)));
}

static Value sumSquares(Node &node, const Reduction &reduction) {
  return reduce(node, ReduceKind::sum, reduction,
                node.mul(reduction.x, reduction.x));
}

static void importReduceSumSquare(Node &node) {
  if (auto reduction = readReduction(node, 18))
    finish(node, *reduction, sumSquares(node, *reduction));
}

static void importReduceL2(Node &node) {
  auto reduction = readReduction(node, 18);
  if (!reduction)
    return;
  Value sum = sumSquares(node, *reduction);
  if (!sum)
    return;
  Type type = node.elementType(sum);
  Type real = isa<FloatType>(type) ? type : Float64Type::get(node.getContext());
  sum = node.cast(sum, real);
  // The square root's slope at 0 is infinite, the norm's is taken as 0.
  Value zero = node.constantLike(0, sum);
  Value isZero = node.compare(graph::CompareKind::eq, sum, zero);
  Value root = node.create<graph::SqrtOp>(
      node.select(isZero, node.constantLike(1, sum), sum));
  finish(node, *reduction, node.cast(node.select(isZero, zero, root), type));
}

static void importReduceLogSum(Node &node) {
  if (auto reduction = readReduction(node, 18))
    finish(node, *reduction,
           node.create<graph::LogOp>(
               reduce(node, ReduceKind::sum, *reduction, reduction->x)));
}

/// m + log(sum(e^(x - m))) with m = max(x), which keeps e^x from overflowing.
/// An infinite m is left out of it: x - m would be NaN.
static void importReduceLogSumExp(Node &node) {
  auto reduction = readReduction(node, 18);
  if (!reduction)
    return;
  Value x = reduction->x;
  Value largest = node.reduce(ReduceKind::max, x, reduction->axes, true);
  Value isInfinite = node.create<graph::IsInfOp>(largest);
  Value shift = node.select(isInfinite, node.constantLike(0, x), largest);
  Value exponentials = node.create<graph::ExpOp>(node.sub(x, shift));
  Value sum = node.reduce(ReduceKind::sum, exponentials, reduction->axes, true);
  Value result = node.add(node.create<graph::LogOp>(sum), shift);
  bool keepsAxes = reduction->keepAxes || reduction->split;
  finish(node, *reduction,
         keepsAxes ? result : node.squeeze(result, reduction->axes));
}

template <ReduceKind kind> static void importArgReduce(Node &node) {
  Value x = node.input(0);
  int64_t axis = node.axis(node.intAttr("axis", 0), node.rank(x));
  bool selectLast = node.intAttr("select_last_index", 0) != 0;
  auto kindAttr = graph::ReduceKindAttr::get(node.getContext(), kind);
  SmallVector<NamedAttribute> attributes = {node.attr("kind", kindAttr),
                                            node.attr("axis", axis)};
  if (selectLast)
    attributes.push_back(node.flag("select_last"));
  Value index = node.create<graph::ArgReduceOp>(x, attributes);
  bool keepAxis = node.intAttr("keepdims", 1) != 0;
  node.setResult(0, keepAxis ? node.unsqueeze(index, {axis}) : index);
}

template <ReduceKind kind> static void importCumulative(Node &node) {
  Value x = node.input(0);
  bool isComputed = node.isComputed(1);
  graph::Extents whole = node.shape(0);
  int64_t axis = 1;
  if (isComputed) {
    x = joinAroundAxisAtRunTime(node, x, 1);
  } else {
    auto given = node.requireInt(1, "axis", 0);
    axis = node.axis(given.value_or(0), node.rank(x));
  }
  auto kindAttr = graph::ReduceKindAttr::get(node.getContext(), kind);
  SmallVector<NamedAttribute> attributes = {node.attr("kind", kindAttr),
                                            node.attr("axis", axis)};
  if (node.intAttr("exclusive", 0) != 0)
    attributes.push_back(node.flag("exclusive"));
  if (node.intAttr("reverse", 0) != 0)
    attributes.push_back(node.flag("reverse"));
  Value result = node.create<graph::CumulativeOp>(x, attributes);
  node.setResult(0, isComputed ? node.reshape(result, whole) : result);
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"ArgMax", 1, last, importArgReduce<ReduceKind::max>},
    {"ArgMin", 1, last, importArgReduce<ReduceKind::min>},
    {"CumProd", 26, last, importCumulative<ReduceKind::prod>},
    {"CumSum", 11, last, importCumulative<ReduceKind::sum>},
    {"ReduceL1", 1, last, importReduceL1},
    {"ReduceL2", 1, last, importReduceL2},
    {"ReduceLogSum", 1, last, importReduceLogSum},
    {"ReduceLogSumExp", 1, last, importReduceLogSumExp},
    {"ReduceMax", 1, last, importReduce<ReduceKind::max, SizeOp::max, 18>},
    {"ReduceMean", 1, last, importReduceMean},
    {"ReduceMin", 1, last, importReduce<ReduceKind::min, SizeOp::min, 18>},
    {"ReduceProd", 1, last, importReduce<ReduceKind::prod, SizeOp::mul, 18>},
    {"ReduceSum", 1, last, importReduce<ReduceKind::sum, SizeOp::add, 13>},
    {"ReduceSumSquare", 1, last, importReduceSumSquare},
};

ArrayRef<OpRow> getReductionOps() { return rows; }

} // namespace tcc::onnx_import
