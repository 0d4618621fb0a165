//===- FusedAttention.cpp - Attention as onnxruntime fuses it -------------===//

#include "frontends/onnx/Attention.h"
#include "frontends/onnx/Quantization.h"

#include <cmath>
#include <limits>

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

/// What both operators have beside query, key and value.
struct Surroundings {
  int64_t mask;                ///< number of the input, which may be absent
  std::optional<int64_t> bias; ///< the same; none where no input can be it
  /// The parts of earlier calls, [batch, heads, length, features]; may be null.
  Value pastKey, pastValue;
};

// --- Masks -------------------------------------------------------------------

static Type getIndexType(Node &node) {
  return IntegerType::get(node.getContext(), 64);
}

/// The mask's integers, [batch], as [batch, 1, 1, 1].
static Value alongBatch(Node &node, Value lengths) {
  return node.unsqueeze(node.cast(lengths, getIndexType(node)), {1, 2, 3});
}

/// True for keys before the end of their batch's, and for a mask of two numbers
/// a batch from the start on: ends come first, then starts.
static Value emitInside(Node &node, const Attention &attention, Value mask) {
  AffineExpr batch = graph::getExtent(attention.query, 0);
  Value column = node.iota({attention.getColumns()}, 0, getIndexType(node));
  if (graph::isEqual(graph::getExtent(mask, 0), batch))
    return node.compare(CompareKind::lt, column, alongBatch(node, mask));
  AffineExpr zero = node.getSizes().constant(0);
  Value end = alongBatch(node, node.slice(mask, 0, zero, batch));
  Value start = alongBatch(node, node.slice(mask, 0, batch, batch));
  return node.pointwise<graph::AndOp>(
      {node.compare(CompareKind::lt, column, end),
       node.compare(CompareKind::ge, column, start)});
}

/// True where a mask that is input `i` shows a key; broadcasts to the scores.
static Value readShown(Node &node, const Attention &attention, int64_t i) {
  Value mask = node.input(i);
  if (!mask)
    return nullptr;
  graph::Extents extents = node.extents(mask);
  AffineExpr batch = graph::getExtent(attention.query, 0);
  AffineExpr two = node.getSizes().constant(2);
  bool isRanges =
      extents.size() == 1 && (graph::isEqual(extents[0], batch) ||
                              graph::isEqual(extents[0], batch * two));
  if (isRanges)
    return emitInside(node, attention, mask);
  bool isRows =
      extents.size() == 3 && graph::isEqual(extents[1], attention.getRows());
  bool isWhole = (extents.size() == 2 || isRows) &&
                 graph::isEqual(extents[0], batch) &&
                 graph::isEqual(extents.back(), attention.getColumns());
  if (!isWhole)
    return node.unsupported(
        "a mask of rank " + llvm::Twine(extents.size()) +
        " that is none of [batch], [2 * batch], [batch, keys] and "
        "[batch, queries, keys]");
  mask = isRows ? node.unsqueeze(mask, {1}) : node.unsqueeze(mask, {1, 2});
  return node.compare(CompareKind::gt, mask, node.constantLike(0, mask));
}

/// What is added to the scores: mask_filter_value where the mask hides a key,
/// the given bias, and -inf at later keys if the node is unidirectional.
static void setFusedBias(Node &node, Attention &attention,
                         const Surroundings &around) {
  Type type = node.elementType(attention.query);
  if (node.hasInput(around.mask)) {
    double hidden = node.floatAttr("mask_filter_value", -10000);
    attention.bias =
        node.select(readShown(node, attention, around.mask),
                    node.constant(0, type), node.constant(hidden, type));
  }
  if (around.bias && node.hasInput(*around.bias)) {
    Value given = node.input(*around.bias);
    if (given && node.rank(given) != 4)
      return (void)node.fail("an attention_bias of rank 4 is expected");
    attention.bias = attention.bias ? node.add(attention.bias, given) : given;
  }
  if (node.intAttr("unidirectional", 0) == 0)
    return;
  AffineExpr one = node.getSizes().constant(1);
  Value column =
      node.iota({one, attention.getColumns()}, 1, getIndexType(node));
  Value row = node.iota({attention.getRows(), one}, 0, getIndexType(node));
  if (around.pastKey)
    row = node.add(row, node.size(graph::getExtent(around.pastKey, 2)));
  double infinity = std::numeric_limits<double>::infinity();
  attention.bias =
      node.select(node.compare(CompareKind::le, column, row),
                  attention.bias ? attention.bias : node.constant(0, type),
                  node.constant(-infinity, type));
}

// --- Both operators ----------------------------------------------------------

/// Refuses an input that only decoders on GPUs have.
static bool refuseInput(Node &node, int64_t i, StringRef name) {
  return !node.hasInput(i) ||
         node.unsupported("input '" + name + "'") != nullptr;
}

/// The result, from query, key and value that lie by head. Key and value get
/// the earlier ones before them.
static Value emitFused(Node &node, Attention &attention,
                       const Surroundings &around) {
  attention.key = appendTo(node, around.pastKey, attention.key);
  attention.value = appendTo(node, around.pastValue, attention.value);
  if (!groupHeads(node, attention))
    return nullptr;
  auto features = graph::getConstant(graph::getExtent(attention.query, 3));
  double given = node.floatAttr("scale", 0);
  if (!features && given == 0)
    return node.unsupported("a dynamic number of features a head");
  // 0 stands for what is usual.
  attention.scale = given != 0 ? given : 1 / std::sqrt(double(*features));
  setFusedBias(node, attention, around);
  return joinHeads(node, emitAttention(node, attention));
}

// --- Attention ---------------------------------------------------------------

/// The features of query, key and value, of `total` in all; empty after
/// failing.
static SmallVector<int64_t> readHiddenSizes(Node &node, int64_t total) {
  auto given = node.intsAttr("qkv_hidden_sizes");
  SmallVector<int64_t> sizes =
      given && !given->empty() ? *given : SmallVector<int64_t>(3, total / 3);
  bool isValid = sizes.size() == 3 && llvm::all_of(sizes, [&](int64_t size) {
                   return size > 0 && size <= total;
                 });
  if (isValid && sizes[0] + sizes[1] + sizes[2] == total)
    return sizes;
  node.fail("qkv_hidden_sizes are not three that add up to the " +
            llvm::Twine(total) + " columns of the weights");
  return {};
}

/// Part `i` of input `input`, the past [2, batch, heads, length, features].
static Value readPast(Node &node, int64_t input, int64_t i) {
  Value past = node.hasInput(input) ? node.input(input) : nullptr;
  if (past && (node.rank(past) != 5 ||
               graph::getConstant(graph::getExtent(past, 0)) != 2))
    return node.fail("a past of [2, batch, heads, length, features] is "
                     "expected");
  return past ? node.squeeze(node.slice(past, 0, i, 1), {0}) : nullptr;
}

/// The number of columns of the weights, of which input and bias must be.
static std::optional<int64_t> countColumns(Node &node, Value bias) {
  Value x = node.input(0), weights = node.input(1);
  if (!x || !weights)
    return std::nullopt;
  std::optional<int64_t> total;
  if (node.rank(x) != 3 || node.rank(weights) != 2)
    node.fail("an input of rank 3 and weights of rank 2 are expected");
  else if (!(total = graph::getConstant(graph::getExtent(weights, 1))))
    node.unsupported("weights of dynamic shape");
  else if (bias && (node.rank(bias) != 1 ||
                    graph::getConstant(graph::getExtent(bias, 0)) != *total))
    node.fail("a bias of the " + llvm::Twine(*total) +
              " columns of the weights is expected");
  return node.hasFailed() ? std::nullopt : total;
}

/// Sets the results from `packed`, the features of query, key and value side by
/// side.
static void setPackedResults(Node &node, Value packed, int64_t columns,
                             Surroundings around, int64_t pastInput) {
  for (StringRef name : {"do_rotary", "past_present_share_buffer"})
    if (node.intAttr(name, 0) != 0)
      return (void)node.unsupported("attribute '" + name + "'");
  if (!packed)
    return;
  SmallVector<int64_t> sizes = readHiddenSizes(node, columns);
  if (sizes.empty())
    return;
  Attention attention;
  int64_t heads = node.intAttr("num_heads", 0), start = 0;
  Value *parts[] = {&attention.query, &attention.key, &attention.value};
  for (auto [part, size] : llvm::zip(parts, sizes)) {
    *part = splitHeads(node, node.slice(packed, 2, start, size), heads);
    start += size;
  }
  around.pastKey = readPast(node, pastInput, 0);
  around.pastValue = readPast(node, pastInput, 1);
  node.setResult(0, emitFused(node, attention, around));
  if (node.hasOutput(1))
    node.setResult(1, node.concat({node.unsqueeze(attention.key, {0}),
                                   node.unsqueeze(attention.value, {0})},
                                  0));
}

void importPackedAttention(Node &node) {
  if (!refuseInput(node, 6, "past_sequence_length"))
    return;
  Value bias = node.hasInput(2) ? node.input(2) : nullptr;
  auto columns = countColumns(node, bias);
  if (!columns)
    return;
  Value packed = node.product(node.input(0), node.input(1));
  if (bias)
    packed = node.add(packed, bias);
  setPackedResults(node, packed, *columns, {3, 5, nullptr, nullptr}, 4);
}

/// The same of integers: input and weights, whose scale and zero point may be
/// one a column.
void importQuantizedAttention(Node &node) {
  Value bias = node.input(2);
  auto columns = bias ? countColumns(node, bias) : std::nullopt;
  if (!columns)
    return;
  Value lhsScale = readScalar(node, 3);
  Value rhsScale = readColumns(node, 4, *columns);
  Value rhsZeroPoint =
      node.hasInput(7) ? readColumns(node, 7, *columns) : nullptr;
  Value product =
      node.product(center(node, node.input(0), readScalarZeroPoint(node, 6), 2),
                   center(node, node.input(1), rhsZeroPoint, 1));
  Value packed = scaleProduct(node, product, lhsScale, rhsScale);
  setPackedResults(node, packed ? node.add(packed, bias) : nullptr, *columns,
                   {5, std::nullopt, nullptr, nullptr}, 8);
}

// --- MultiHeadAttention ------------------------------------------------------

/// Part `i` of x [batch, length, heads, parts, features], as [batch, length,
/// heads * features].
static Value unpack(Node &node, Value x, int64_t i) {
  graph::Extents extents = node.extents(x);
  Size features = node.getSizes().product({extents[2], extents[4]});
  if (!features)
    return node.fail("the input is too large");
  return node.reshape(node.slice(x, 3, i, 1),
                      {extents[0], extents[1], *features});
}

static bool hasParts(Node &node, Value x, int64_t count) {
  if (graph::getConstant(graph::getExtent(x, 3)) == count)
    return true;
  return node.fail("packed heads of " + llvm::Twine(count) +
                   " parts are expected") != nullptr;
}

/// Query, key and value before heads are split, from whichever inputs hold
/// them.
static bool readParts(Node &node, Attention &attention) {
  Value query = node.input(0);
  if (!query)
    return false;
  if (node.rank(query) == 5) {
    if (node.hasInput(1) || node.hasInput(2))
      return node.fail("a packed query goes without key and value") != nullptr;
    if (!hasParts(node, query, 3))
      return false;
    attention.query = unpack(node, query, 0);
    attention.key = unpack(node, query, 1);
    attention.value = unpack(node, query, 2);
    return !node.hasFailed();
  }
  attention.query = query;
  attention.key = node.input(1);
  if (!attention.key)
    return false;
  if (node.rank(attention.key) == 5) {
    if (node.hasInput(2))
      return node.fail("a packed key goes without value") != nullptr;
    if (!hasParts(node, attention.key, 2))
      return false;
    attention.value = unpack(node, attention.key, 1);
    attention.key = unpack(node, attention.key, 0);
    return !node.hasFailed();
  }
  attention.value = node.input(2);
  return attention.value != nullptr;
}

/// Adds the projections' bias, [features of query + key + value], to the parts
/// that do not lie by head yet.
static void addProjectionBias(Node &node, ArrayRef<Value *> parts) {
  Value bias = node.input(3);
  int64_t start = 0;
  for (Value *part : parts) {
    if (!bias || node.rank(bias) != 1 || node.rank(*part) < 3)
      return (void)node.fail("a bias of rank 1 and query, key and value of "
                             "rank 3 or more are expected");
    graph::Extents extents = node.extents(*part);
    bool isSplit = extents.size() == 4;
    auto heads =
        isSplit ? graph::getConstant(extents[1]) : std::optional<int64_t>(1);
    auto features = graph::getConstant(extents.back());
    if (!heads || !features)
      return (void)node.unsupported("a dynamic number of features");
    int64_t size = *heads * *features;
    if (!isSplit)
      *part = node.add(*part, node.slice(bias, 0, start, size));
    start += size;
  }
  if (node.hasFailed())
    return;
  auto given = graph::getConstant(graph::getExtent(bias, 0));
  if (given != start)
    node.fail("the bias does not have the " + llvm::Twine(start) +
              " elements of query, key and value");
}

void importMultiHeadAttention(Node &node) {
  if (!refuseInput(node, 8, "past_sequence_length") ||
      !refuseInput(node, 9, "cache_indirection"))
    return;
  if (node.hasInput(6) != node.hasInput(7))
    return (void)node.fail("past_key goes with past_value");
  Attention attention;
  if (!readParts(node, attention))
    return;
  Value *parts[] = {&attention.query, &attention.key, &attention.value};
  if (node.hasInput(3))
    addProjectionBias(node, parts);
  int64_t heads = node.intAttr("num_heads", 0);
  for (Value *part : parts)
    *part = splitHeads(node, *part, heads);
  Surroundings around = {4, 5, nullptr, nullptr};
  if (node.hasInput(6)) {
    around.pastKey = node.input(6);
    around.pastValue = node.input(7);
  }
  node.setResult(0, emitFused(node, attention, around));
  node.setResult(1, attention.key);
  node.setResult(2, attention.value);
}

} // namespace tcc::onnx_import
