//===- Decoding.cpp - What decoders compute beside attention --------------===//
//
// Rotary embeddings, and ops that go on from the state of earlier calls.
//
//===----------------------------------------------------------------------===//

#include "frontends/onnx/Attention.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/Window.h"

using namespace mlir;

namespace tcc::onnx_import {

static Type getIndexType(Node &node) {
  return IntegerType::get(node.getContext(), 64);
}

// --- Rotary embedding --------------------------------------------------------

/// A cache of cosines or sines, [batch, length, pairs] once the positions are
/// looked up, with an axis of extent 1 for the heads.
static Value readCache(Node &node, int64_t input, Value positions,
                       int64_t pairs, int64_t headAxis) {
  Value cache = node.input(input);
  if (cache && positions) {
    if (node.rank(cache) != 2 || node.rank(positions) != 2)
      return node.fail("caches and position_ids of rank 2 are expected");
    cache = node.gather(cache, positions, 0);
  }
  if (!cache)
    return nullptr;
  if (node.rank(cache) != 3 ||
      graph::getConstant(graph::getExtent(cache, 2)) != pairs)
    return node.fail("the caches do not have " + llvm::Twine(pairs) +
                     " pairs of features");
  return node.unsqueeze(cache, {headAxis});
}

/// Turns the pairs of the last axis of x; a pair is two neighbours, or an
/// element of the first half and its like of the second.
static Value rotatePairs(Node &node, Value x, Value cosine, Value sine,
                         int64_t pairs, bool isInterleaved) {
  if (!x || !cosine || !sine)
    return nullptr;
  int64_t axis = node.rank(x) - 1;
  AffineExpr count = node.getSizes().constant(pairs);
  auto getSide = [&](int64_t side) {
    int64_t start = isInterleaved ? side : side * pairs;
    return node.slice(x, axis, node.getSizes().constant(start), count,
                      isInterleaved ? 2 : 1);
  };
  Value first = getSide(0), second = getSide(1);
  Value real = node.sub(node.mul(cosine, first), node.mul(sine, second));
  Value imaginary = node.add(node.mul(sine, first), node.mul(cosine, second));
  if (!isInterleaved)
    return node.concat({real, imaginary}, axis);
  Value turned = node.concat(
      {node.unsqueeze(real, {axis + 1}), node.unsqueeze(imaginary, {axis + 1})},
      axis + 1);
  return node.reshape(turned, node.extents(x));
}

Value rotate(Node &node, Value x, int64_t headAxis, const Rotation &rotation) {
  if (!x)
    return nullptr;
  if (node.rank(x) != 4)
    return node.fail("an input of rank 3 or 4 is expected");
  auto features = graph::getConstant(graph::getExtent(x, 3));
  if (!features)
    return node.unsupported("a dynamic number of features a head");
  int64_t turned = rotation.features == 0 ? *features : rotation.features;
  if (turned < 0 || turned > *features || turned % 2 != 0)
    return node.fail("the features that a rotary embedding turns are odd or "
                     "more than a head has");
  auto read = [&](int64_t input) {
    return readCache(node, input, rotation.positions, turned / 2, headAxis);
  };
  Value result =
      rotatePairs(node, node.slice(x, 3, 0, turned), read(rotation.cosine),
                  read(rotation.sine), turned / 2, rotation.isInterleaved);
  if (turned == *features)
    return result;
  return node.concat({result, node.slice(x, 3, turned, *features - turned)}, 3);
}

/// The rotary embedding of input 0, [batch, heads, length, features] or [batch,
/// length, heads * features].
static void emitRotary(Node &node, int64_t heads, Rotation rotation) {
  Value x = node.input(0);
  if (!x)
    return;
  rotation.isInterleaved = node.intAttr("interleaved", 0) != 0;
  rotation.features = node.intAttr("rotary_embedding_dim", 0);
  graph::Extents extents = node.extents(x);
  bool isFlat = extents.size() == 3;
  if (isFlat) {
    AffineExpr count = node.getSizes().constant(std::max<int64_t>(heads, 1));
    Size features = node.getSizes().divideProducts(extents[2], count);
    if (heads < 1 || !features)
      return (void)node.fail("num_heads does not divide the features");
    x = node.reshape(x, {extents[0], extents[1], count, *features});
  }
  Value result = rotate(node, x, isFlat ? 2 : 1, rotation);
  node.setResult(0, result ? node.reshape(result, extents) : nullptr);
}

static void importRotaryEmbedding(Node &node) {
  Value positions = node.hasInput(3) ? node.input(3) : nullptr;
  emitRotary(node, node.intAttr("num_heads", 0), {1, 2, positions});
}

/// The positions of a RotaryEmbedding of onnxruntime, [batch, length]; one
/// number is the first position of all.
static Value readOrtPositions(Node &node, Value x) {
  Value positions = node.input(1);
  if (!x || !positions || node.rank(positions) != 1)
    return positions;
  if (graph::getConstant(graph::getExtent(positions, 0)) != 1)
    return node.fail("position_ids of one element or of rank 2 are expected");
  AffineExpr length = graph::getExtent(x, node.rank(x) == 3 ? 1 : 2);
  Value steps =
      node.iota({node.getSizes().constant(1), length}, 1, getIndexType(node));
  return node.add(steps, node.cast(positions, getIndexType(node)));
}

/// That of onnxruntime: without num_heads the caches tell the features a head.
static void importOrtRotaryEmbedding(Node &node) {
  Value x = node.input(0), cosine = node.input(2);
  if (!x || !cosine)
    return;
  if ((node.rank(x) != 3 && node.rank(x) != 4) || node.rank(cosine) != 2)
    return (void)node.fail("an input of rank 3 or 4 and caches of rank 2 are "
                           "expected");
  if (node.intAttr("is_packed_batching", 0) != 0)
    return (void)node.unsupported("packed batching");
  if (node.floatAttr("scale", 1) != 1)
    return (void)node.unsupported("a scale other than 1");
  int64_t heads = node.intAttr("num_heads", 0);
  auto pairs = graph::getConstant(graph::getExtents(cosine).back());
  auto features = graph::getConstant(graph::getExtents(x).back());
  if (heads == 0 && node.intAttr("rotary_embedding_dim", 0) != 0)
    return (void)node.fail("rotary_embedding_dim goes with num_heads");
  if (heads == 0 && pairs && features && *pairs > 0)
    heads = *features / (2 * *pairs);
  emitRotary(node, heads, {2, 3, readOrtPositions(node, x)});
}

// --- Caches ------------------------------------------------------------------

/// The positions that updates of a cache go to, [batch, 1, length, 1...].
static Value getPositions(Node &node, Value updates, int64_t axis,
                          AffineExpr length, bool isCircular) {
  Value first = node.input(2);
  int64_t rank = node.rank(updates);
  if (!first || node.rank(first) != 1)
    return node.fail("write_indices must have one element a batch");
  graph::Extents extents(rank, node.getSizes().constant(1));
  extents[0] = graph::getExtent(first, 0);
  Value start = node.reshape(node.cast(first, getIndexType(node)), extents);
  extents[0] = node.getSizes().constant(1);
  extents[axis] = graph::getExtent(updates, axis);
  Value positions =
      node.add(start, node.iota(extents, axis, getIndexType(node)));
  return isCircular
             ? node.pointwise<graph::ModOp>({positions, node.size(length)})
             : positions;
}

/// Writes a sequence into a cache from a position of its own in each batch.
static void importTensorScatter(Node &node) {
  Value cache = node.input(0), updates = node.input(1);
  int64_t rank = node.rank(cache);
  int64_t axis = node.axis(node.intAttr("axis", -2), rank);
  std::string mode = node.stringAttr("mode", "linear");
  if (mode != "linear" && mode != "circular")
    node.fail("mode must be linear or circular");
  if (!cache || !updates || node.hasFailed())
    return;
  AffineExpr length = graph::getExtent(cache, axis);
  graph::Extents written = node.extents(updates);
  bool fits = axis > 0 && int64_t(written.size()) == rank;
  for (int64_t i = 0; i < rank && fits; ++i)
    fits = i == axis || graph::isEqual(written[i], graph::getExtent(cache, i));
  if (!fits)
    return (void)node.fail("the update differs from the cache in more than the "
                           "axis");
  if (!node.hasInput(2)) {
    AffineExpr rest = length - written[axis];
    Value kept = node.slice(cache, axis, written[axis], rest);
    return node.setResult(0, node.concat({updates, kept}, axis));
  }
  Value positions =
      getPositions(node, updates, axis, length, mode == "circular");
  auto kind =
      graph::ScatterKindAttr::get(node.getContext(), graph::ScatterKind::none);
  node.setResult(0, node.create<graph::ScatterElementsOp>(
                        {cache, node.broadcast(positions, written), updates},
                        {node.attr("axis", axis), node.attr("kind", kind)}));
}

/// A depthwise convolution over positions up to each one; the state is what it
/// reads of earlier calls.
static void importCausalConv(Node &node) {
  Value x = node.input(0), filter = node.input(1);
  Value past = node.hasInput(3) ? node.input(3) : nullptr;
  std::string activation = node.stringAttr("activation", "none");
  bool isSilu = activation == "silu" || activation == "swish";
  if (!isSilu && activation != "none")
    node.fail("activation must be none, silu or swish");
  if (!x || !filter || node.hasFailed())
    return;
  auto type = cast<RankedTensorType>(filter.getType());
  if (node.rank(x) != 3 || type.getRank() != 3 || !type.hasStaticShape() ||
      type.getDimSize(2) < 1)
    return (void)node.fail("an input and a static weight of rank 3 are "
                           "expected");
  int64_t kept = type.getDimSize(2) - 1;
  if (past && (node.rank(past) != 3 ||
               graph::getConstant(graph::getExtent(past, 2)) != kept))
    return (void)node.fail("past_state does not hold " + llvm::Twine(kept) +
                           " positions");
  Window window(type.getShape().drop_front(2));
  Value whole = past ? node.concat({past, x}, 2) : x;
  if (!past)
    window.low[0] = kept;
  Value result = emitConv(node, whole, filter, window, type.getDimSize(0));
  if (node.hasInput(2))
    result = addBias(node, result, node.input(2));
  node.setResult(0, isSilu ? node.create<graph::SiluOp>(result) : result);
  if (!past)
    whole = node.pad(x, node.constantLike(0, x), {0, 0, kept}, {0, 0, 0});
  node.setResult(1, node.slice(whole, 2, graph::getExtent(x, 2),
                               node.getSizes().constant(kept)));
}

// --- Linear attention --------------------------------------------------------

namespace {

/// Inputs of a LinearAttention node, [batch, length, heads * features]; decay
/// and rate may be null.
struct LinearAttention {
  Value query, key, value, decay, rate;
  Type precision; // of the state: f32, or f64 for inputs of f64
  AffineExpr batch, length;
  int64_t heads, group; // of key and value; heads of the query for each
  double scale;
};

} // namespace

/// decay and beta, which the rule has or lacks.
static bool readRule(Node &node, LinearAttention &attention) {
  std::string rule = node.stringAttr("update_rule", "gated_delta");
  bool isGated = rule == "gated" || rule == "gated_delta";
  bool isDelta = rule == "delta" || rule == "gated_delta";
  if (!isGated && !isDelta && rule != "linear")
    return node.fail("update_rule is unknown") != nullptr;
  if (node.hasInput(4) != isGated || node.hasInput(5) != isDelta)
    return node.fail("decay or beta do not fit the update rule") != nullptr;
  attention.decay = isGated ? node.input(4) : nullptr;
  attention.rate = isDelta ? node.input(5) : nullptr;
  for (Value x : {attention.query, attention.key, attention.value,
                  attention.decay, attention.rate})
    if (x && node.rank(x) != 3)
      return node.fail("inputs of rank 3 are expected") != nullptr;
  return !node.hasFailed();
}

static bool readLinearAttention(Node &node, LinearAttention &attention) {
  int64_t heads = node.intAttr("q_num_heads", 0);
  attention.query = node.input(0);
  attention.key = node.input(1);
  attention.value = node.input(2);
  attention.heads = node.intAttr("kv_num_heads", 0);
  if (node.hasFailed() || !readRule(node, attention))
    return false;
  auto features = graph::getConstant(graph::getExtent(attention.query, 2));
  if (attention.heads < 1 || heads < 1 || heads % attention.heads != 0 ||
      !features || *features % heads != 0)
    return node.fail("the numbers of heads do not fit the features") != nullptr;
  Type type = node.elementType(attention.query);
  attention.precision =
      type.isF64() ? type : Float32Type::get(node.getContext());
  attention.group = heads / attention.heads;
  attention.batch = graph::getExtent(attention.query, 0);
  attention.length = graph::getExtent(attention.query, 1);
  attention.scale = node.floatAttr("scale", 0);
  if (attention.scale == 0)
    attention.scale = 1 / std::sqrt(double(*features / heads));
  return true;
}

/// x [batch, heads * n], in the state's type, as [batch, heads, n or 1, 1 or
/// n].
static Value splitStep(Node &node, const LinearAttention &attention, Value x,
                       bool isColumn) {
  if (!x)
    return nullptr;
  const Sizes &sizes = node.getSizes();
  Size features = sizes.divideProducts(graph::getExtent(x, 1),
                                       sizes.constant(attention.heads));
  // One rate for all heads.
  bool isShared = graph::getConstant(graph::getExtent(x, 1)) == 1;
  if (!features && !isShared)
    return node.fail("the heads do not divide the features");
  AffineExpr one = sizes.constant(1);
  AffineExpr heads = isShared ? one : sizes.constant(attention.heads);
  AffineExpr rest = isShared ? one : *features;
  Value wide = node.cast(x, attention.precision);
  return node.reshape(wide, {graph::getExtent(x, 0), heads,
                             isColumn ? rest : one, isColumn ? one : rest});
}

/// One step: the next state [batch, heads, keys, values], and its result
/// [batch, heads, group, values].
static std::pair<Value, Value> step(Node &node,
                                    const LinearAttention &attention,
                                    Value state,
                                    llvm::function_ref<Value(Value)> getStep) {
  auto split = [&](Value x, bool isColumn) {
    return splitStep(node, attention, x ? getStep(x) : nullptr, isColumn);
  };
  if (attention.decay)
    state = node.mul(state,
                     node.create<graph::ExpOp>(split(attention.decay, true)));
  Value value = split(attention.value, false);
  if (attention.rate) {
    Value known = node.matmul(split(attention.key, false), state);
    value = node.mul(split(attention.rate, false), node.sub(value, known));
  }
  state = node.add(state, node.mul(split(attention.key, true), value));
  Value query = split(attention.query, false);
  if (!query)
    return {};
  const Sizes &sizes = node.getSizes();
  AffineExpr group = sizes.constant(attention.group);
  Size features = sizes.divideProducts(graph::getExtent(query, 3), group);
  if (!features)
    return {};
  Value rows =
      node.reshape(query, {attention.batch, sizes.constant(attention.heads),
                           group, *features});
  Value result = node.matmul(rows, state);
  return {state, node.mul(result, node.constantLike(attention.scale, result))};
}

/// The first state: the past one, or zeros.
static Value getFirstState(Node &node, const LinearAttention &attention) {
  const Sizes &sizes = node.getSizes();
  AffineExpr heads = sizes.constant(attention.heads);
  Size keys = sizes.divideProducts(graph::getExtent(attention.key, 2), heads);
  Size values =
      sizes.divideProducts(graph::getExtent(attention.value, 2), heads);
  if (!keys || !values)
    return node.fail("the heads do not divide the features");
  graph::Extents extents = {attention.batch, heads, *keys, *values};
  if (!node.hasInput(3))
    return node.broadcast(node.constant(0, attention.precision), extents);
  Value past = node.input(3);
  if (past && node.extents(past) != extents)
    return node.fail("past_state does not fit keys and values");
  return node.cast(past, attention.precision);
}

static void importLinearAttention(Node &node) {
  LinearAttention attention;
  if (!readLinearAttention(node, attention))
    return;
  Value state = getFirstState(node, attention), results;
  if (graph::getConstant(attention.length) == 1) {
    auto getStep = [&](Value x) { return node.squeeze(x, {1}); };
    std::tie(state, results) = step(node, attention, state, getStep);
  } else {
    Type boolean = IntegerType::get(node.getContext(), 1);
    auto both = node.loop(
        {.trips = node.size(attention.length), .known = attention.length},
        state, [&](Value iteration, ValueRange carried) -> SmallVector<Value> {
          auto getStep = [&](Value x) { return node.sliceAt(x, 1, iteration); };
          auto [next, result] = step(node, attention, carried[0], getStep);
          return {node.constant(1, boolean), next, result};
        });
    if (both.size() != 2)
      return;
    state = both[0];
    results = node.transpose(both[1], {1, 0, 2, 3, 4});
  }
  Size features =
      results
          ? node.getSizes().product(
                {node.getSizes().constant(attention.heads * attention.group),
                 graph::getExtent(state, 3)})
          : std::nullopt;
  if (!features)
    return (void)node.fail("the result is too large");
  Type type = node.elementType(0);
  Value flat =
      node.reshape(results, {attention.batch, attention.length, *features});
  node.setResult(0, node.cast(flat, type));
  node.setResult(
      1, node.cast(state, node.hasInput(3) ? node.elementType(3) : type));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"CausalConvWithState", 27, last, importCausalConv},
    {"LinearAttention", 27, last, importLinearAttention},
    {"RotaryEmbedding", 1, 1, importOrtRotaryEmbedding, kOrtDomain},
    {"RotaryEmbedding", 23, last, importRotaryEmbedding},
    {"TensorScatter", 24, last, importTensorScatter},
};

ArrayRef<OpRow> getDecodingOps() { return rows; }

} // namespace tcc::onnx_import
