//===- Compaction.cpp - Elements and boxes that data choose ---------------===//
//
// How many there are becomes a computed symbol, after which their positions
// are found.
//
//===----------------------------------------------------------------------===//
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;
using tcc::graph::CompareKind;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

/// For each element of a vector of booleans how many up to it are true.
static Value countTrue(Node &node, Value mask) {
  auto sum = graph::ReduceKindAttr::get(node.getContext(), ReduceKind::sum);
  Type i64 = IntegerType::get(node.getContext(), 64);
  return node.create<graph::CumulativeOp>(
      node.cast(mask, i64),
      {node.attr("kind", sum), node.attr("axis", int64_t(0))});
}

/// `x` with `updates` at `positions`; all are vectors, and it is an element
/// longer: where positions for nothing lead.
static Value scatter(Node &node, AffineExpr extent, Value positions,
                     Value updates) {
  if (!updates)
    return nullptr;
  Value empty = node.broadcast(node.constantLike(0, updates), {extent + 1});
  auto kind =
      graph::ScatterKindAttr::get(node.getContext(), graph::ScatterKind::none);
  return node.create<graph::ScatterElementsOp>(
      {empty, positions, updates},
      {node.attr("axis", int64_t(0)), node.attr("kind", kind)});
}

namespace {

/// The elements of a vector of booleans that are true.
struct Chosen {
  Value positions;  ///< in order, a vector of i64
  AffineExpr count; ///< a computed symbol
};

} // namespace

static Chosen findTrue(Node &node, Value mask, const std::string &name) {
  Chosen chosen;
  if (!mask)
    return chosen;
  Type i64 = IntegerType::get(node.getContext(), 64);
  Value total = node.reduce(ReduceKind::sum, node.cast(mask, i64), {0},
                            /*keepAxes=*/false);
  if (!total)
    return chosen;
  chosen.count =
      node.readSize({AffineExpr(), total}, name,
                    node.getSizes().getRange(graph::getExtent(mask, 0)).max);
  chosen.positions = node.create<graph::FindOp>(
      mask, {}, graph::makeTensorType({chosen.count}, i64));
  return chosen;
}

/// x as a vector.
static Value toVector(Node &node, Value x) {
  Size count = x ? node.getSizes().product(node.extents(x))
                 : std::optional<AffineExpr>();
  if (!count)
    return x ? node.fail("the input is too large") : nullptr;
  return node.reshape(x, {*count});
}

// --- NonZero, Compress -------------------------------------------------------

static void importNonZero(Node &node) {
  Value x = node.input(0), flat = toVector(node, x);
  if (!flat)
    return;
  Value mask = node.compare(CompareKind::ne, flat, node.constantLike(0, flat));
  Chosen chosen = findTrue(node, mask, node.getResultName());
  if (!chosen.positions)
    return;
  // The coordinate of the innermost axis is what is left of the others.
  SmallVector<Value> rows;
  Value rest = chosen.positions;
  for (AffineExpr extent : llvm::reverse(node.extents(x))) {
    Value own = node.max(node.size(extent), index(node, 1));
    Value next = node.div(rest, own);
    rows.push_back(node.unsqueeze(node.sub(rest, node.mul(next, own)), {0}));
    rest = next;
  }
  std::reverse(rows.begin(), rows.end());
  if (rows.empty()) { // of a scalar
    Value none = node.broadcast(index(node, 0),
                                {node.getSizes().constant(0), chosen.count});
    return node.setResult(0, none);
  }
  node.setResult(0, node.concat(rows, 0));
}

static void importCompress(Node &node) {
  Value x = node.input(0), mask = node.input(1);
  if (!x || !mask)
    return;
  bool isFlat = node.findAttr("axis") == nullptr;
  int64_t axis = isFlat ? 0 : node.axis(node.intAttr("axis", 0), node.rank(x));
  Value source = isFlat ? toVector(node, x) : x;
  if (node.hasFailed())
    return;
  AffineExpr extent = graph::getExtent(source, axis);
  if (node.rank(mask) != 1 ||
      node.getSizes().compare(SizeCompare::le, graph::getExtent(mask, 0),
                              extent) != true)
    return (void)node.fail("the condition is not a vector, or may be longer "
                           "than the input");
  if (auto known = node.knownContent(1)) {
    SmallVector<int64_t> kept;
    for (auto [i, isKept] : llvm::enumerate(*known))
      if (graph::getConstant(isKept) != 0)
        kept.push_back(i);
    return node.setResult(0, node.gather(source, node.constant(kept), axis));
  }
  Chosen chosen = findTrue(node, mask, node.getResultName());
  node.setResult(0, node.gather(source, chosen.positions, axis));
}

// --- Unique ------------------------------------------------------------------

/// The order of a vector's elements; equal ones keep theirs.
static Value sortIndices(Node &node, Value x) {
  auto extent = x ? graph::getConstant(graph::getExtent(x, 0)) : std::nullopt;
  if (!extent)
    return x ? node.unsupported("an input of a dynamic extent") : nullptr;
  Operation *op =
      node.createOp(graph::TopKOp::getOperationName(), x,
                    {node.attr("k", *extent), node.attr("axis", int64_t(0)),
                     node.flag("smallest")});
  return op ? op->getResult(1) : nullptr;
}

/// The order of the rows of a matrix: by columns from the last, each of which
/// leaves equal rows as they are.
static Value sortRows(Node &node, Value rows) {
  AffineExpr columns = graph::getExtent(rows, 1);
  if (graph::getConstant(columns) == 1)
    return sortIndices(node, node.squeeze(rows, {1}));
  Type i64 = IntegerType::get(node.getContext(), 64);
  Value count = node.size(columns);
  Value first = node.iota({graph::getExtent(rows, 0)}, 0, i64);
  auto sorted = node.loop(
      {.trips = count, .known = columns}, first,
      [&](Value step, ValueRange order) -> SmallVector<Value> {
        Value column =
            node.sub(node.sub(count, node.constantLike(1, count)), step);
        Value keys = node.gather(node.sliceAt(rows, 1, column), order[0], 0);
        Value next = node.gather(order[0], sortIndices(node, keys), 0);
        return {node.constant(1, IntegerType::get(node.getContext(), 1)), next};
      });
  return sorted.size() == 1 ? sorted[0] : nullptr;
}

/// Whether each row of a sorted matrix differs from the one before.
static Value startsGroup(Node &node, Value rows) {
  AffineExpr count = graph::getExtent(rows, 0);
  Type i64 = IntegerType::get(node.getContext(), 64);
  Value number = node.iota({count}, 0, i64);
  Value before = node.max(node.sub(number, index(node, 1)), index(node, 0));
  Value differs =
      node.compare(CompareKind::ne, rows, node.gather(rows, before, 0));
  Value any = node.reduce(ReduceKind::max, node.cast(differs, i64), {1},
                          /*keepAxes=*/false);
  Value isFirst = node.compare(CompareKind::eq, number, index(node, 0));
  Value isOther = node.compare(CompareKind::ne, any, index(node, 0));
  return isOther ? node.create<graph::OrOp>({isFirst, isOther}) : nullptr;
}

/// Unique rows of `rows`, a matrix: of each group of equal ones the first.
struct UniqueRows {
  Value firsts;  ///< where the groups begin, in the order asked for
  Value inverse; ///< the number of each row's group in that order
  Value counts;  ///< the rows of each group
};

static UniqueRows findUnique(Node &node, Value rows, bool isSorted) {
  UniqueRows unique;
  std::string name = node.getResultName();
  AffineExpr extent = graph::getExtent(rows, 0);
  Value order = sortRows(node, rows);
  Value starts = order ? startsGroup(node, node.gather(rows, order, 0)) : order;
  Chosen groups = findTrue(node, starts, name);
  if (!groups.positions)
    return unique;
  unique.firsts = node.gather(order, groups.positions, 0);
  Value group = node.sub(countTrue(node, starts), index(node, 1));
  AffineExpr count = groups.count;
  if (!isSorted) { // numbered by their first rows
    Value flags = scatter(node, extent, unique.firsts,
                          node.broadcast(index(node, 1), {count}));
    flags = node.slice(flags, 0, node.getSizes().constant(0), extent);
    Value isFirst = node.compare(CompareKind::ne, flags, index(node, 0));
    Chosen firsts = findTrue(node, isFirst, name + ".order");
    if (!firsts.positions)
      return unique;
    Value numbers = node.gather(countTrue(node, isFirst), unique.firsts, 0);
    group =
        node.gather(flatten(node, node.sub(numbers, index(node, 1))), group, 0);
    unique.firsts = firsts.positions;
    count = firsts.count;
  }
  Value inverse = scatter(node, extent, order, group);
  unique.inverse = node.slice(inverse, 0, node.getSizes().constant(0), extent);
  Type i64 = IntegerType::get(node.getContext(), 64);
  auto add =
      graph::ScatterKindAttr::get(node.getContext(), graph::ScatterKind::add);
  Value zeros = node.broadcast(index(node, 0), {extent + 1});
  Value sums = node.create<graph::ScatterElementsOp>(
      {zeros, group, node.broadcast(index(node, 1), {extent})},
      {node.attr("axis", int64_t(0)), node.attr("kind", add)});
  unique.counts =
      node.slice(node.cast(sums, i64), 0, node.getSizes().constant(0), count);
  return unique;
}

static void importUnique(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  bool isFlat = node.findAttr("axis") == nullptr;
  int64_t axis = isFlat ? 0 : node.axis(node.intAttr("axis", 0), node.rank(x));
  if (node.hasFailed())
    return;
  Value source = isFlat ? toVector(node, x) : x, rows = source;
  SmallVector<int64_t> permutation = {axis};
  for (int64_t i = 0; rows && i < node.rank(rows); ++i)
    if (i != axis)
      permutation.push_back(i);
  rows = rows ? node.transpose(rows, permutation) : nullptr;
  if (!rows)
    return;
  graph::Extents extents = node.extents(rows);
  Size columns = node.getSizes().product(ArrayRef(extents).drop_front());
  if (!columns)
    return (void)node.fail("the input is too large");
  rows = node.reshape(rows, {extents[0], *columns});
  UniqueRows unique = findUnique(node, rows, node.intAttr("sorted", 1) != 0);
  node.setResult(0, node.gather(source, unique.firsts, axis));
  Value others[] = {unique.firsts, unique.inverse, unique.counts};
  for (auto [i, value] : llvm::enumerate(others))
    if (node.hasOutput(i + 1))
      node.setResult(i + 1, value);
}

// --- NonMaxSuppression -------------------------------------------------------

/// [batch, 4, box]: the low borders along two axes, then the high ones.
static Value readBorders(Node &node, Value boxes, bool isCentered) {
  Value parts = node.transpose(boxes, {0, 2, 1});
  Value first = node.slice(parts, 1, 0, 2), second = node.slice(parts, 1, 2, 2);
  if (!isCentered)
    return node.concat({node.min(first, second), node.max(first, second)}, 1);
  Value half = node.mul(second, node.constantLike(0.5, second));
  return node.concat({node.sub(first, half), node.add(first, half)}, 1);
}

/// Gives the borders as many boxes as `scores` has for each class.
static Value equateBoxes(Node &node, Value borders, Value &scores) {
  Value one = borders ? node.slice(borders, 1, 0, 1) : nullptr;
  node.equate(one, scores);
  if (!one || !scores)
    return nullptr;
  graph::Extents extents = node.extents(one);
  extents[1] = node.getSizes().constant(4);
  return node.reshape(borders, extents);
}

static Value scalarInput(Node &node, int64_t i, Value otherwise) {
  return node.hasInput(i) ? node.reshape(node.input(i), {}) : otherwise;
}

/// As graph.choose_boxes: [batch, class, place].
static Value chooseBoxes(Node &node, Value borders, Value scores) {
  graph::Extents places = node.extents(scores);
  Type i64 = IntegerType::get(node.getContext(), 64);
  Value candidates =
      node.hasInput(4)
          ? node.compare(CompareKind::gt, scores, scalarInput(node, 4, nullptr))
          : node.broadcast(
                node.constant(1, IntegerType::get(node.getContext(), 1)),
                places);
  Value limit = scalarInput(node, 2, index(node, 0));
  if (auto known = node.knownNumber(limit))
    if (*known < node.getSizes().getRange(places[2]).max)
      places[2] =
          node.getSizes().constant(std::max<int64_t>(int64_t(*known), 0));
  Value threshold = scalarInput(node, 3, node.constantLike(0, scores));
  return node.create<graph::ChooseBoxesOp>(
      {borders, scores, candidates, limit, threshold}, {},
      graph::makeTensorType(places, i64));
}

static void importNonMaxSuppression(Node &node) {
  Value x = node.input(0), scores = node.input(1);
  if (!x || !scores)
    return;
  if (node.rank(x) != 3 || node.rank(scores) != 3 ||
      graph::getConstant(graph::getExtent(x, 2)) != 4)
    return (void)node.fail("boxes [batch, box, 4] and scores [batch, class, "
                           "box] are expected");
  bool isCentered = node.intAttr("center_point_box", 0) != 0;
  Value borders = equateBoxes(node, readBorders(node, x, isCentered), scores);
  Value chosen = borders ? chooseBoxes(node, borders, scores) : nullptr;
  if (!chosen)
    return;
  Value flat = toVector(node, chosen);
  Chosen rows =
      findTrue(node, node.compare(CompareKind::ge, flat, index(node, 0)),
               node.getResultName());
  if (!rows.positions)
    return;
  graph::Extents extents = node.extents(chosen);
  Value places = node.max(node.size(extents[2]), index(node, 1));
  Value pair = node.div(rows.positions, places);
  Value classes = node.max(node.size(extents[1]), index(node, 1));
  Value batch = node.div(pair, classes);
  SmallVector<Value> columns;
  for (Value column : {batch, node.sub(pair, node.mul(batch, classes)),
                       node.gather(flatten(node, chosen), rows.positions, 0)})
    columns.push_back(node.unsqueeze(column, {1}));
  node.setResult(0, node.concat(columns, 1));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Compress", 9, last, importCompress},
    {"NonMaxSuppression", 10, last, importNonMaxSuppression},
    {"NonZero", 9, last, importNonZero},
    {"Unique", 11, last, importUnique},
};

ArrayRef<OpRow> getCompactionOps() { return rows; }

} // namespace tcc::onnx_import
