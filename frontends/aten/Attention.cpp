#include "frontends/Attention.h"
#include "frontends/aten/Call.h"
#include "frontends/aten/Random.h"
#include "frontends/aten/Tracer.h"

#include <limits>

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::aten {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A boolean mask as what is added to scores.
static Value toBias(Call &call, Value mask, Type type) {
  if (!mask || !call.elementType(mask).isInteger(1))
    return call.cast(mask, type);
  return call.select(mask, call.constant(0, type),
                     call.constant(-kInfinity, type));
}

/// Query i sees keys up to i.
static Value emitCausal(Call &call, const Attention &attention) {
  Type index = call.getIndexType();
  AffineExpr one = call.getSizes().constant(1);
  Value rows = call.iota({attention.getRows(), one}, 0, index);
  Value columns = call.iota({one, attention.getColumns()}, 1, index);
  return call.compare(CompareKind::le, columns, rows);
}

/// x [batch..., heads, length, features] in rank 4.
static Value flatten(Call &call, Value x) {
  if (!x)
    return nullptr;
  graph::Extents extents = call.extents(x);
  if (extents.size() < 3)
    return call.unsupported("attention without heads");
  graph::Extents four(extents.end() - 3, extents.end());
  Size batch = call.getSizes().product(ArrayRef(extents).drop_back(3));
  if (!batch)
    return call.fail("the input is too large");
  four.insert(four.begin(), *batch);
  return call.reshape(x, four);
}

/// The weights with elements dropped, as in training.
static Value emitWithDropout(Call &call, const Attention &attention, double p) {
  Value query = mergeGroup(call, attention.query, attention.group);
  Value scores = call.matmul(query, attention.key, false, true);
  scores = call.mul(scores, call.constantLike(attention.scale, scores));
  if (attention.bias)
    scores = call.add(scores, arrangeBias(call, attention));
  Value weights =
      call.create<graph::SoftmaxOp>(scores, {call.attr("axis", 3L)});
  if (attention.isGuarded)
    weights = call.select(call.create<graph::IsNanOp>(weights),
                          call.constantLike(0, weights), weights);
  weights = emitDropout(call, weights, p);
  return splitGroup(call, attention, call.matmul(weights, attention.value));
}

static void importAttention(Call &call) {
  Value query = call.tensor("query");
  Attention attention;
  attention.query = flatten(call, query);
  attention.key = flatten(call, call.tensor("key"));
  attention.value = flatten(call, call.tensor("value"));
  if (!groupHeads(call, attention))
    return;
  if (attention.group != 1 && !call.isTrue("enable_gqa"))
    return (void)call.fail("query and key have different numbers of heads");
  Type type = call.elementType(attention.query);
  auto features = graph::getConstant(graph::getExtent(attention.query, 3));
  if (!features && !call.has("scale"))
    return (void)call.unsupported("a dynamic number of features a head");
  attention.scale =
      call.has("scale") ? call.real("scale") : 1 / std::sqrt(double(*features));
  Value mask = call.optional("attn_mask");
  if (mask && call.rank(mask) > 4)
    mask = flatten(call, mask);
  // A boolean mask may hide all keys of a row, which gives zeros.
  attention.isGuarded = mask != nullptr;
  attention.bias = mask ? toBias(call, mask, type) : nullptr;
  if (call.isTrue("is_causal")) {
    if (mask)
      return (void)call.fail("a mask beside is_causal");
    attention.bias = toBias(call, emitCausal(call, attention), type);
  }
  double p = call.real("dropout_p");
  bool drops = dropsIn(call, p);
  if (p > 0 && !call.getTracer().trains())
    call.unsupported("dropout in training mode");
  if (call.hasFailed())
    return;
  Value result = drops ? emitWithDropout(call, attention, p)
                       : emitAttention(call, attention);
  if (!result)
    return;
  call.give(call.reshape(
      result, call.withExtent(query, call.rank(query) - 1,
                              graph::getExtent(attention.value, 3))));
}

// --- Attention with its projections ------------------------------------------

/// [batch, length, heads * features] as [batch, heads, length, features].
static Value splitHeads(Call &call, Value x, int64_t heads) {
  if (!x)
    return nullptr;
  graph::Extents extents = call.extents(x);
  AffineExpr count = call.getSizes().constant(heads);
  Size features = call.getSizes().divideProducts(extents[2], count);
  if (!features)
    return call.fail("the number of heads does not divide the features");
  return call.transpose(
      call.reshape(x, {extents[0], extents[1], count, *features}),
      {0, 2, 1, 3});
}

/// The fast path of nn.MultiheadAttention: self-attention of x [batch, length,
/// embed_dim] with projections in and out.
static void importNativeAttention(Call &call) {
  const Item &self = call.get("query");
  if (self.tensor != call.get("key").tensor ||
      self.tensor != call.get("value").tensor || call.has("mask") ||
      call.isTrue("need_weights"))
    return (void)call.unsupported("other than self-attention without mask and "
                                  "weights");
  Value x = call.tensor("query");
  int64_t heads = call.integer("num_head"), width = call.integer("embed_dim");
  if (!x || call.rank(x) != 3 || heads < 1 || width < 1 || width % heads != 0)
    return (void)call.fail("the heads do not fit the input");
  auto project = [&](Value rows, StringRef weight, StringRef bias) {
    Value y = call.matmul(rows, call.tensor(weight), false, true);
    return call.add(y, call.tensor(bias));
  };
  Value packed = project(x, "qkv_weight", "qkv_bias");
  Attention attention;
  attention.query = splitHeads(call, call.slice(packed, 2, 0, width), heads);
  attention.key = splitHeads(call, call.slice(packed, 2, width, width), heads);
  attention.value =
      splitHeads(call, call.slice(packed, 2, 2 * width, width), heads);
  if (!groupHeads(call, attention))
    return;
  attention.scale = 1 / std::sqrt(double(width / heads));
  Value y = call.transpose(emitAttention(call, attention), {0, 2, 1, 3});
  call.give(
      project(call.reshape(y, call.extents(x)), "proj_weight", "proj_bias"));
  call.giveItem({});
}

static const OpRow rows[] = {
    {"_native_multi_head_attention(Tensor query, Tensor key, Tensor value, int "
     "embed_dim, int num_head, Tensor qkv_weight, Tensor qkv_bias, Tensor "
     "proj_weight, Tensor proj_bias, Tensor? mask=None, bool "
     "need_weights=True, bool average_attn_weights=True, int? mask_type=None) "
     "-> (Tensor, Tensor)",
     importNativeAttention},
    {"scaled_dot_product_attention(Tensor query, Tensor key, Tensor value, "
     "Tensor? attn_mask=None, float dropout_p=0.0, bool is_causal=False, *, "
     "float? scale=None, bool enable_gqa=False) -> Tensor",
     importAttention},
};

ArrayRef<OpRow> getAttentionOps() { return rows; }

} // namespace tcc::aten
