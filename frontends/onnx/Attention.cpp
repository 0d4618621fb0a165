#include "frontends/onnx/Attention.h"
#include "frontends/onnx/GraphImporter.h"
#include "frontends/onnx/Literals.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Sees the stages between the products, as qk_matmul_output_mode counts them:
/// the scores, with softcap, with bias, and the weights. Gives what to go on
/// with.
using VisitStage = llvm::function_ref<Value(int64_t stage, Value)>;

// --- Heads -------------------------------------------------------------------

Value splitHeads(Node &node, Value x, int64_t heads) {
  if (!x || node.rank(x) != 3)
    return x;
  graph::Extents extents = node.extents(x);
  AffineExpr count = node.getSizes().constant(std::max<int64_t>(heads, 1));
  Size features = node.getSizes().divideProducts(extents[2], count);
  if (heads < 1 || !features)
    return node.fail("the number of heads does not divide the features");
  Value split = node.reshape(x, {extents[0], extents[1], count, *features});
  return node.transpose(split, {0, 2, 1, 3});
}

Value joinHeads(Node &node, Value x) {
  if (!x)
    return nullptr;
  graph::Extents extents = node.extents(x);
  Size features = node.getSizes().product({extents[1], extents[3]});
  if (!features)
    return node.fail("the result is too large");
  return node.reshape(node.transpose(x, {0, 2, 1, 3}),
                      {extents[0], extents[2], *features});
}

// --- The products ------------------------------------------------------------

/// softmax along the last axis, in the precision asked for.
static Value emitWeights(Node &node, const Attention &attention, Value scores) {
  if (!scores)
    return nullptr;
  Value wide =
      attention.precision ? node.cast(scores, attention.precision) : scores;
  Value weights = node.create<graph::SoftmaxOp>(wide, {node.attr("axis", 3L)});
  if (attention.isGuarded)
    weights = node.select(node.create<graph::IsNanOp>(weights),
                          node.constantLike(0, weights), weights);
  return weights;
}

/// The computation step by step, for a node that shows or changes the scores.
static Value emitStages(Node &node, const Attention &attention,
                        VisitStage visitStage) {
  auto visit = [&](int64_t stage, Value x) {
    Value next = visitStage(stage, splitGroup(node, attention, x));
    return mergeGroup(node, next, attention.group);
  };
  Value query = mergeGroup(node, attention.query, attention.group);
  Value scores = node.matmul(query, attention.key, false, true);
  scores = node.mul(scores, node.constantLike(attention.scale, scores));
  scores = visit(0, scores);
  if (attention.softcap > 0) {
    Value cap = node.constantLike(attention.softcap, scores);
    Value bounded = node.create<graph::TanhOp>(node.div(scores, cap));
    scores = node.mul(bounded, cap);
  }
  scores = visit(1, scores);
  if (attention.bias)
    scores = node.add(scores, arrangeBias(node, attention));
  scores = visit(2, scores);
  Value weights = visit(3, emitWeights(node, attention, scores));
  weights = node.cast(weights, node.elementType(attention.query));
  return splitGroup(node, attention, node.matmul(weights, attention.value));
}

Value emitCapped(Node &node, const Attention &attention) {
  auto keep = [](int64_t, Value x) { return x; };
  return attention.softcap > 0 ? emitStages(node, attention, keep)
                               : emitAttention(node, attention);
}

// --- Nodes -------------------------------------------------------------------

Value appendTo(Node &node, Value past, Value x) {
  if (!past || !x)
    return x;
  if (node.rank(past) != 4 || node.rank(x) != 4)
    return node.fail("a past key or value is not of rank 4");
  return node.concat({past, x}, 2);
}

static bool readScale(Node &node, Attention &attention) {
  auto features = graph::getConstant(graph::getExtent(attention.query, 3));
  if (!features && !node.findAttr("scale"))
    return node.unsupported("a dynamic number of features a head") != nullptr;
  attention.scale =
      node.floatAttr("scale", features ? 1 / std::sqrt(double(*features)) : 1);
  attention.softcap = node.floatAttr("softcap", 0);
  if (node.findAttr("softmax_precision")) {
    int64_t number = node.intAttr("softmax_precision", 1);
    attention.precision = getElementType(number, node.getContext());
    if (!isa_and_present<FloatType>(attention.precision))
      return node.unsupported("softmax in " + getTypeName(number)) != nullptr;
  }
  return !node.hasFailed();
}

/// True if the softmax must be taken in a type of its own: that of f16 and bf16
/// is taken in f32 anyway.
static bool hasOwnPrecision(Node &node, const Attention &attention) {
  Type type = node.elementType(attention.query);
  bool isNarrow = type.getIntOrFloatBitWidth() < 32;
  return attention.precision && attention.precision != type &&
         !(isNarrow && attention.precision.isF32());
}

static void importAttention(Node &node) {
  Attention attention;
  int64_t queryHeads = node.intAttr("q_num_heads", 0),
          keyHeads = node.intAttr("kv_num_heads", 0);
  Value past = node.hasInput(4) ? node.input(4) : nullptr;
  Value pastValue = node.hasInput(5) ? node.input(5) : nullptr;
  bool isFlat = node.inputRank(0) == 3;
  if (node.hasInput(4) != node.hasInput(5) ||
      (node.hasInput(4) && node.hasInput(6)))
    return (void)node.fail("past_key goes with past_value, and without "
                           "nonpad_kv_seqlen");
  attention.query = splitHeads(node, node.input(0), queryHeads);
  attention.key =
      appendTo(node, past, splitHeads(node, node.input(1), keyHeads));
  attention.value =
      appendTo(node, pastValue, splitHeads(node, node.input(2), keyHeads));
  if (!groupHeads(node, attention) || !readScale(node, attention))
    return;
  node.setResult(1, attention.key);
  node.setResult(2, attention.value);
  setBias(node, attention, past);
  Type type = node.elementType(attention.query);
  attention.value = node.cast(attention.value, type);
  int64_t shown =
      node.hasOutput(3) ? node.intAttr("qk_matmul_output_mode", 0) : -1;
  bool isWhole =
      attention.softcap <= 0 && shown < 0 && !hasOwnPrecision(node, attention);
  auto show = [&](int64_t stage, Value x) {
    if (stage == shown)
      node.setResult(3, node.cast(x, type));
    return x;
  };
  Value result = isWhole ? emitAttention(node, attention)
                         : emitStages(node, attention, show);
  node.setResult(0, isFlat ? joinHeads(node, result) : result);
}

/// `name`, a graph of one tensor, of x, which keeps its type.
static Value applyGraph(Node &node, StringRef name, Value x) {
  const onnx::AttributeProto *attribute = node.findAttr(name);
  if (!attribute || !x)
    return x;
  if (!attribute->has_g() || attribute->g().input_size() != 1 ||
      attribute->g().output_size() != 1)
    return node.fail("attribute '" + name + "' is not a graph of one tensor");
  GraphImporter &importer = node.getImporter();
  Tensor tensor;
  tensor.type = cast<RankedTensorType>(x.getType());
  tensor.value = x;
  auto results = importer.importSubgraph(
      attribute->g(), importer.getPool().make(std::move(tensor)));
  Value result = importer.materialize(*results.front());
  if (!result || result.getType() != x.getType())
    return node.fail("graph '" + name + "' changes the type of its tensor");
  return result;
}

static void importFlexAttention(Node &node) {
  Attention attention;
  attention.query = node.input(0);
  attention.key = node.input(1);
  attention.value = node.input(2);
  if (!groupHeads(node, attention) || !readScale(node, attention))
    return;
  Type type = node.elementType(attention.query);
  if (!attention.precision)
    attention.precision =
        type.isF64() ? type : Float32Type::get(node.getContext());
  attention.value = node.cast(attention.value, type);
  auto change = [&](int64_t stage, Value x) {
    if (stage == 2)
      return applyGraph(node, "score_mod", node.cast(x, attention.precision));
    return stage == 3 ? applyGraph(node, "prob_mod", x) : x;
  };
  node.setResult(0, emitStages(node, attention, change));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Attention", 1, 1, importPackedAttention, kOrtDomain},
    {"Attention", 23, last, importAttention},
    {"FlexAttention", 1, 1, importFlexAttention, "ai.onnx.preview"},
    {"GroupQueryAttention", 1, 1, importGroupQueryAttention, kOrtDomain},
    {"MultiHeadAttention", 1, 1, importMultiHeadAttention, kOrtDomain},
    {"QAttention", 1, 1, importQuantizedAttention, kOrtDomain},
};

ArrayRef<OpRow> getAttentionOps() { return rows; }

} // namespace tcc::onnx_import
