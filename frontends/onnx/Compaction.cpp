//===- Compaction.cpp - Elements and boxes that data choose ---------------===//
//
// How many there are becomes a computed symbol: the running count of those
// chosen says where each goes.
//
//===----------------------------------------------------------------------===//
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/RuntimeShapes.h"

using namespace mlir;
using tcc::graph::CompareKind;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

/// For each element of a vector the sum of those up to it.
static Value addUp(Node &node, Value counts) {
  auto sum = graph::ReduceKindAttr::get(node.getContext(), ReduceKind::sum);
  return node.create<graph::CumulativeOp>(
      counts, {node.attr("kind", sum), node.attr("axis", int64_t(0))});
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
  Value numbers;    ///< of all elements: how many before and with it are chosen
  AffineExpr count; ///< a computed symbol
};

} // namespace

static Chosen findTrue(Node &node, Value mask, const std::string &name) {
  Chosen chosen;
  if (!mask)
    return chosen;
  AffineExpr extent = graph::getExtent(mask, 0);
  Type i64 = IntegerType::get(node.getContext(), 64);
  Value ones = node.cast(mask, i64);
  chosen.numbers = addUp(node, ones);
  Value place =
      node.select(mask, node.sub(chosen.numbers, node.constantLike(1, ones)),
                  node.size(extent));
  Value all = scatter(node, extent, place, node.iota({extent}, 0, i64));
  Value total = node.reduce(ReduceKind::sum, ones, {0}, /*keepAxes=*/false);
  if (!all || !total)
    return chosen;
  chosen.count = node.readSize({AffineExpr(), total}, name,
                               node.getSizes().getRange(extent).max);
  chosen.positions =
      node.slice(all, 0, node.getSizes().constant(0), chosen.count);
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
  Value group = node.sub(groups.numbers, index(node, 1));
  AffineExpr count = groups.count;
  if (!isSorted) { // numbered by their first rows
    Value flags = scatter(node, extent, unique.firsts,
                          node.broadcast(index(node, 1), {count}));
    flags = node.slice(flags, 0, node.getSizes().constant(0), extent);
    Chosen firsts =
        findTrue(node, node.compare(CompareKind::ne, flags, index(node, 0)),
                 name + ".order");
    if (!firsts.positions)
      return unique;
    Value numbers = node.gather(firsts.numbers, unique.firsts, 0);
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

namespace {

/// Boxes [batch, 1, box]: borders with low before high, and areas.
struct Boxes {
  Value low[2], high[2], area;

  /// One operation on each part.
  template <typename Function> Boxes map(Function function) const {
    return {{function(low[0]), function(low[1])},
            {function(high[0]), function(high[1])},
            function(area)};
  }
};

} // namespace

/// The boxes of x, of which there are as many as `scores` has for each class.
static Boxes readBoxes(Node &node, Value x, Value &scores, bool isCentered) {
  Boxes boxes;
  Value parts[4], turned = node.transpose(x, {0, 2, 1});
  for (int64_t i = 0; i < 4; ++i)
    parts[i] = node.slice(turned, 1, i, 1);
  Value same = parts[0];
  node.equate(same, scores);
  if (!same)
    return boxes;
  for (Value &part : parts)
    part = node.reshape(part, node.extents(same));
  for (int64_t axis = 0; axis < 2; ++axis) {
    Value a = parts[axis], b = parts[axis + 2];
    if (isCentered) {
      Value half = node.mul(b, node.constantLike(0.5, b));
      boxes.low[axis] = node.sub(a, half);
      boxes.high[axis] = node.add(a, half);
      continue;
    }
    boxes.low[axis] = node.min(a, b);
    boxes.high[axis] = node.max(a, b);
  }
  boxes.area = node.mul(node.sub(boxes.high[0], boxes.low[0]),
                        node.sub(boxes.high[1], boxes.low[1]));
  return boxes;
}

/// Whether boxes overlap by more than `threshold` of what both cover.
static Value overlaps(Node &node, const Boxes &a, const Boxes &b,
                      Value threshold) {
  Value zero = node.constantLike(0, a.area), both;
  for (int axis = 0; axis < 2; ++axis) {
    Value extent = node.max(node.sub(node.min(a.high[axis], b.high[axis]),
                                     node.max(a.low[axis], b.low[axis])),
                            zero);
    both = both ? node.mul(both, extent) : extent;
  }
  Value all = node.sub(node.add(a.area, b.area), both);
  Value isMore = node.compare(CompareKind::gt, node.div(both, all), threshold);
  Value isReal = node.compare(CompareKind::gt, both, zero);
  return isMore ? node.create<graph::AndOp>(
                      node.broadcastTogether({isMore, isReal}))
                : nullptr;
}

static Value scalarInput(Node &node, int64_t i, Value otherwise) {
  return node.hasInput(i) ? node.reshape(node.input(i), {}) : otherwise;
}

/// In each iteration the best of the boxes that are left is chosen, for each
/// batch and class at once, and those that overlap it are dropped. Returns
/// [iteration, batch, class]: the boxes, and whether any was left.
static SmallVector<Value> chooseBoxes(Node &node, const Boxes &boxes,
                                      Value scores, Value isLeft) {
  graph::Extents extents = node.extents(scores);
  Type i64 = IntegerType::get(node.getContext(), 64);
  Value threshold = scalarInput(node, 3, node.constantLike(0, scores));
  Value most = scalarInput(node, 2, index(node, 0));
  Value total = node.size(extents[2]);
  LoopLength length;
  length.trips = node.max(node.min(most, total), index(node, 0));
  length.known = extents[2];
  length.condition = node.constant(1, IntegerType::get(node.getContext(), 1));
  length.names = {"", node.getResultName() + ".iterations"};
  Value batch = node.iota({extents[0], extents[1]}, 0, i64);
  Value lowest = node.constantLike(-INFINITY, scores);
  auto kind = graph::ReduceKindAttr::get(node.getContext(), ReduceKind::max);
  return node.loop(
      length, isLeft, [&](Value, ValueRange carried) -> SmallVector<Value> {
        Value left = node.select(carried[0], scores, lowest);
        Value best = node.create<graph::ArgReduceOp>(
            left, {node.attr("kind", kind), node.attr("axis", int64_t(2))});
        Value any = node.reduce(ReduceKind::max, node.cast(carried[0], i64),
                                {2}, /*keepAxes=*/false);
        Value isAny = node.compare(CompareKind::ne, any, index(node, 0));
        Value place = node.add(node.mul(batch, total), best);
        Boxes own = boxes.map([&](Value part) {
          return node.unsqueeze(node.gather(flatten(node, part), place, 0),
                                {2});
        });
        Value isSame = node.compare(CompareKind::eq, node.iota(extents, 2, i64),
                                    node.unsqueeze(best, {2}));
        Value isGone = overlaps(node, own, boxes, threshold);
        isGone = isGone ? node.create<graph::OrOp>(
                              node.broadcastTogether({isGone, isSame}))
                        : isGone;
        Value next = isGone
                         ? node.create<graph::AndOp>(
                               {carried[0], node.create<graph::NotOp>(isGone)})
                         : isGone;
        Value more = node.reduce(ReduceKind::max, node.cast(next, i64),
                                 {0, 1, 2}, /*keepAxes=*/false);
        return {node.compare(CompareKind::ne, more, index(node, 0)), next, best,
                isAny};
      });
}

static void importNonMaxSuppression(Node &node) {
  Value x = node.input(0), scores = node.input(1);
  if (!x || !scores)
    return;
  if (node.rank(x) != 3 || node.rank(scores) != 3 ||
      graph::getConstant(graph::getExtent(x, 2)) != 4)
    return (void)node.fail("boxes [batch, box, 4] and scores [batch, class, "
                           "box] are expected");
  Boxes boxes =
      readBoxes(node, x, scores, node.intAttr("center_point_box", 0) != 0);
  if (!boxes.area || !scores)
    return;
  graph::Extents extents = node.extents(scores);
  Value isLeft =
      node.hasInput(4)
          ? node.compare(CompareKind::gt, scores, scalarInput(node, 4, nullptr))
          : node.broadcast(
                node.constant(1, IntegerType::get(node.getContext(), 1)),
                extents);
  SmallVector<Value> chosen = chooseBoxes(node, boxes, scores, isLeft);
  if (chosen.size() != 3)
    return;
  // Ordered by batch, class and iteration.
  Value best = flatten(node, node.transpose(chosen[1], {1, 2, 0}));
  Value isAny = toVector(node, node.transpose(chosen[2], {1, 2, 0}));
  Chosen rows = findTrue(node, isAny, node.getResultName());
  if (!rows.positions)
    return;
  Value iterations =
      node.max(node.size(graph::getExtent(chosen[1], 0)), index(node, 1));
  Value pair = node.div(rows.positions, iterations);
  Value classes = node.max(node.size(extents[1]), index(node, 1));
  Value batch = node.div(pair, classes);
  SmallVector<Value> columns;
  for (Value column : {batch, node.sub(pair, node.mul(batch, classes)),
                       node.gather(best, rows.positions, 0)})
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
