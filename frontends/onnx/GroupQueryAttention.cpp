//===- GroupQueryAttention.cpp - Attention of decoders with a cache -------===//
//
// onnxruntime's operator of that name. Each sequence of the batch has its own
// number of keys, `seqlens_k` + 1, the new ones included. These go into the
// cache behind the earlier ones; behind them it is zero.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Attention.h"
#include "frontends/onnx/RuntimeShapes.h"

#include <cmath>
#include <limits>

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

namespace {

/// The inputs of a node.
enum Input : int64_t {
  kPastKey = 3,
  kPastValue,
  kLengths,
  kTotalLength,
  kCosine,
  kSine,
  kPositions,
  kBias,
  kSink,
  kFirstUnknown
};

/// Which places of the cache a call reads and writes: those before `start` hold
/// earlier keys, those from there to `end` the new ones.
struct Places {
  AffineExpr rows;   // the number of new keys
  AffineExpr length; // of the cache after the call
  Value start, end;  // i64 [batch, 1, 1, 1]
  Value rowPlaces;   // i64 [batch, 1, rows, 1]: where each new key goes
};

} // namespace

static Type getIndexType(Node &node) {
  return IntegerType::get(node.getContext(), 64);
}

// --- Query, key and value ----------------------------------------------------

static void refuseOthers(Node &node) {
  for (int64_t i = kFirstUnknown; i < node.getNumInputs(); ++i)
    if (node.hasInput(i))
      return (void)node.unsupported("input " + llvm::Twine(i) +
                                    ", of a quantized cache or of norms of "
                                    "query and key,");
  for (StringRef name : {"sliding_window_cache", "qk_output"})
    if (node.intAttr(name, 0) != 0)
      return (void)node.unsupported("attribute '" + name + "'");
  for (StringRef name : {"k_quant_type", "v_quant_type"})
    if (node.stringAttr(name, "NONE") != "NONE")
      return (void)node.unsupported("a quantized cache");
}

/// Query, key and value by head, from three inputs or from one that has them
/// side by side.
static bool readHeads(Node &node, Attention &attention) {
  int64_t heads = node.intAttr("num_heads", 0),
          shared = node.intAttr("kv_num_heads", 0);
  if (heads < 1 || shared < 1 || heads % shared != 0)
    return node.fail("num_heads is no multiple of kv_num_heads") != nullptr;
  Value query = node.input(0), key, value;
  if (!query)
    return false;
  if (node.hasInput(1) != node.hasInput(2))
    return node.fail("key goes with value") != nullptr;
  if (node.hasInput(1)) {
    key = node.input(1);
    value = node.input(2);
  } else {
    auto total = graph::getConstant(graph::getExtent(query, 2));
    if (node.rank(query) != 3 || !total || *total % (heads + 2 * shared) != 0)
      return node.fail("a query that holds key and value, with features for "
                       "num_heads and twice kv_num_heads, is expected") !=
             nullptr;
    int64_t features = *total / (heads + 2 * shared), end = features * heads;
    key = node.slice(query, 2, end, features * shared);
    value = node.slice(query, 2, end + features * shared, features * shared);
    query = node.slice(query, 2, 0, end);
  }
  attention.query = splitHeads(node, query, heads);
  attention.key = splitHeads(node, key, shared);
  attention.value = splitHeads(node, value, shared);
  if (!groupHeads(node, attention))
    return false;
  if (!graph::isEqual(attention.getRows(), attention.getColumns()))
    return node.fail("query and key of one length are expected") != nullptr;
  return true;
}

// --- The cache ---------------------------------------------------------------

/// The length of the cache after the call, as total_sequence_length says: that
/// of before where it is not more, or else longer by the new keys.
static AffineExpr readLength(Node &node, AffineExpr rows) {
  auto total = node.sizeInput(kTotalLength, "total_sequence_length");
  Value past = node.hasInput(kPastKey) ? node.input(kPastKey) : nullptr;
  if (node.hasFailed() || (past && node.rank(past) != 4)) {
    node.fail("a past_key of rank 4 is expected");
    return {};
  }
  AffineExpr earlier =
      past ? graph::getExtent(past, 2) : node.getSizes().constant(0);
  AffineExpr grown = earlier + rows;
  Value given = node.scalar(*total);
  auto isAtMost = [&](AffineExpr length) {
    return total->known &&
           node.getSizes().getRange(length - total->known).min >= 0;
  };
  bool isGrown = total->known && graph::isEqual(total->known, grown);
  if (!isGrown &&
      (isAtMost(earlier) || (past && graph::getConstant(earlier)))) {
    demand(node, node.compare(CompareKind::le, given, node.size(earlier)),
           "total_sequence_length is more than the cache holds");
    return earlier;
  }
  demand(node, node.compare(CompareKind::eq, given, node.size(grown)),
         "total_sequence_length is neither the length of the cache with the "
         "new keys behind it nor known to be at most that of the cache");
  return grown;
}

static std::optional<Places> readPlaces(Node &node,
                                        const Attention &attention) {
  Places places;
  places.rows = attention.getRows();
  places.length = readLength(node, places.rows);
  Value lengths = node.input(kLengths);
  if (node.hasFailed())
    return std::nullopt;
  AffineExpr one = node.getSizes().constant(1);
  Value last =
      node.reshape(node.cast(lengths, getIndexType(node)),
                   {graph::getExtent(attention.query, 0), one, one, one});
  if (!last)
    return std::nullopt;
  places.end = node.add(last, index(node, 1));
  places.start =
      node.max(node.sub(places.end, node.size(places.rows)), index(node, 0));
  places.rowPlaces =
      node.add(places.start,
               node.iota({one, one, places.rows, one}, 2, getIndexType(node)));
  return places;
}

/// The cache with the new keys or values x in it; input `past` is the one of
/// before.
static Value store(Node &node, int64_t past, Value x, const Places &places) {
  if (!node.hasInput(past))
    return x;
  Value cache = node.input(past);
  graph::Extents extents = node.extents(x), before = extents;
  if (!cache || node.rank(cache) != 4)
    return node.fail("a cache of rank 4 is expected");
  before[2] = graph::getExtent(cache, 2);
  if (node.extents(cache) != before)
    return node.fail("the cache does not fit the new keys");
  Value zero = node.constantLike(0, x);
  if (!graph::isEqual(before[2], places.length))
    cache = node.concat({cache, node.broadcast(zero, extents)}, 2);
  Value column = node.iota({places.length, node.getSizes().constant(1)}, 0,
                           getIndexType(node));
  cache = node.select(node.compare(CompareKind::lt, column, places.start),
                      cache, zero);
  auto kind =
      graph::ScatterKindAttr::get(node.getContext(), graph::ScatterKind::none);
  return node.create<graph::ScatterElementsOp>(
      {cache, node.broadcast(places.rowPlaces, extents), x},
      {node.attr("axis", int64_t(2)), node.attr("kind", kind)});
}

// --- Scores ------------------------------------------------------------------

/// True where a query sees a key, [batch, 1, rows, columns].
static Value emitVisible(Node &node, const Places &places) {
  Value column = node.iota({node.getSizes().constant(1), places.length}, 1,
                           getIndexType(node));
  Value visible = node.compare(CompareKind::lt, column, places.end);
  int64_t window = node.intAttr("local_window_size", -1);
  if (node.intAttr("causal", 1) == 0)
    return window > 0 ? node.fail("local_window_size without causality")
                      : visible;
  visible = node.pointwise<graph::AndOp>(
      {visible, node.compare(CompareKind::le, column, places.rowPlaces)});
  if (window <= 0 || window > kMaxElements)
    return visible;
  Value first = node.sub(places.rowPlaces, index(node, window));
  return node.pointwise<graph::AndOp>(
      {visible, node.compare(CompareKind::gt, column, first)});
}

/// The attention_bias with a column for each place of the cache.
static Value readBias(Node &node, const Places &places) {
  Value bias = node.input(kBias);
  if (!bias || node.rank(bias) != 4)
    return node.fail("an attention_bias of rank 4 is expected");
  AffineExpr columns = graph::getExtent(bias, 3);
  if (graph::isEqual(columns, places.length))
    return bias;
  if (node.getSizes().getRange(places.length - columns).min < 0)
    return node.fail("an attention_bias with no more columns than the cache "
                     "has places is expected");
  graph::Extents rest = node.extents(bias);
  rest[3] = places.length - columns;
  return node.concat({bias, node.broadcast(node.constantLike(0, bias), rest)},
                     3);
}

/// One more key and value of zeros, whose score is a head's number of head_sink
/// or 0: so the softmax's sum has that addend.
static void addSink(Node &node, Attention &attention) {
  AffineExpr one = node.getSizes().constant(1);
  Type type = node.elementType(attention.query);
  Value sink = node.constant(0, type);
  if (node.hasInput(kSink))
    sink = node.reshape(node.input(kSink), {one, attention.heads, one, one});
  graph::Extents rows = node.extents(attention.query),
                 scores = {rows[0], attention.heads, rows[2],
                           attention.getColumns()};
  Value bias = node.broadcast(attention.bias, scores);
  scores[3] = one;
  attention.bias = node.concat({bias, node.broadcast(sink, scores)}, 3);
  for (Value *x : {&attention.key, &attention.value})
    if (*x)
      *x = node.pad(*x, node.constantLike(0, *x), {0, 0, 0, 0}, {0, 0, 1, 0});
}

static void setScores(Node &node, Attention &attention, const Places &places) {
  auto features = graph::getConstant(graph::getExtent(attention.query, 3));
  double scale = node.floatAttr("scale", 0);
  if (!features && scale == 0)
    return (void)node.unsupported("a dynamic number of features a head");
  attention.scale = scale != 0 ? scale : 1 / std::sqrt(double(*features));
  attention.softcap = node.floatAttr("softcap", 0);
  Type type = node.elementType(attention.query);
  Value shown =
      node.hasInput(kBias) ? readBias(node, places) : node.constant(0, type);
  Value hidden = node.constant(-std::numeric_limits<double>::infinity(), type);
  attention.bias = node.select(emitVisible(node, places), shown, hidden);
  if (node.hasInput(kSink) || node.intAttr("smooth_softmax", 0) == 1)
    addSink(node, attention);
}

// --- Nodes -------------------------------------------------------------------

/// Turns query and key at position_ids, or where the new keys go.
static void rotateHeads(Node &node, Attention &attention,
                        const Places &places) {
  Value cosine = node.hasInput(kCosine) ? node.input(kCosine) : nullptr;
  if (!cosine || !node.hasInput(kSine) || node.rank(cosine) != 2)
    return (void)node.fail("do_rotary goes with caches of rank 2");
  auto pairs = graph::getConstant(graph::getExtent(cosine, 1));
  if (!pairs)
    return (void)node.unsupported("a dynamic number of features that are "
                                  "turned");
  Rotation rotation = {kCosine, kSine, nullptr};
  rotation.positions = node.hasInput(kPositions)
                           ? node.input(kPositions)
                           : node.squeeze(places.rowPlaces, {1, 3});
  rotation.isInterleaved = node.intAttr("rotary_interleaved", 0) != 0;
  rotation.features = 2 * *pairs;
  attention.query = rotate(node, attention.query, 1, rotation);
  attention.key = rotate(node, attention.key, 1, rotation);
}

void importGroupQueryAttention(Node &node) {
  if (node.hasInput(kPastKey) != node.hasInput(kPastValue))
    return (void)node.fail("past_key goes with past_value");
  if (node.hasOutput(3))
    return (void)node.unsupported("output 'output_qk'");
  refuseOthers(node);
  Attention attention;
  if (node.hasFailed() || !readHeads(node, attention))
    return;
  auto places = readPlaces(node, attention);
  if (!places)
    return;
  if (node.intAttr("do_rotary", 0) != 0)
    rotateHeads(node, attention, *places);
  if (node.hasFailed())
    return;
  attention.key = store(node, kPastKey, attention.key, *places);
  attention.value = store(node, kPastValue, attention.value, *places);
  node.setResult(1, attention.key);
  node.setResult(2, attention.value);
  if (node.hasFailed())
    return;
  setScores(node, attention, *places);
  if (!node.hasFailed())
    node.setResult(0, joinHeads(node, emitCapped(node, attention)));
}

} // namespace tcc::onnx_import
