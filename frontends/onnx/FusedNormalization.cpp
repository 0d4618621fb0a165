//===- FusedNormalization.cpp - Sums that onnxruntime normalizes ----------===//

#include "frontends/onnx/Normalization.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/Quantization.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Refuses operands that are no vectors of one element a feature of x.
static bool checkFeatures(Node &node, Value x, ArrayRef<Value> vectors) {
  if (!x || node.hasFailed())
    return false;
  AffineExpr features = graph::getExtents(x).back();
  for (Value vector : vectors)
    if (vector && (node.rank(vector) != 1 ||
                   !graph::isEqual(graph::getExtent(vector, 0), features)))
      return node.fail("vectors of one element a feature are expected") !=
             nullptr;
  return true;
}

// --- Residual connections ----------------------------------------------------

/// x + skip + bias, of which the bias may be absent; skip may lack the batch.
static Value emitResidual(Node &node, Value bias) {
  Value x = node.input(0), skip = node.input(1);
  if (!x || !skip)
    return nullptr;
  if (node.rank(x) != 2 && node.rank(x) != 3)
    return node.fail("an input of rank 2 or 3 is expected");
  Value sum = node.add(x, skip);
  if (sum && sum.getType() != x.getType())
    return node.fail("the skip does not broadcast to the input");
  return bias ? node.add(sum, bias) : sum;
}

/// Outputs 1 and 2, statistics for training, are left to be refused.
static void importSkipLayerNormalization(Node &node) {
  Value scale = node.input(2);
  Value shift = node.hasInput(3) ? node.input(3) : nullptr;
  Value bias = node.hasInput(4) ? node.input(4) : nullptr;
  Value sum = emitResidual(node, bias);
  double epsilon = node.floatAttr("epsilon", 1e-12);
  if (!checkFeatures(node, sum, {scale, shift, bias}))
    return;
  node.setResult(
      0, emitLayerNorm(node, sum, node.rank(sum) - 1, epsilon, scale, shift));
  node.setResult(3, sum);
}

static void importSkipRmsNormalization(Node &node) {
  Value scale = node.input(2);
  Value bias = node.hasInput(3) ? node.input(3) : nullptr;
  Value sum = emitResidual(node, bias);
  double epsilon = node.floatAttr("epsilon", 1e-12);
  if (!checkFeatures(node, sum, {scale, bias}))
    return;
  node.setResult(0, emitRmsNorm(node, sum, node.rank(sum) - 1, epsilon, scale));
  node.setResult(3, sum);
}

// --- Embeddings --------------------------------------------------------------

namespace {

/// Input numbers of a scale and a zero point.
struct ParameterInputs {
  int64_t scale, zeroPoint;
};

/// Where an operator that embeds words has inputs beside those that all have:
/// from 2 on tables of words, positions and segments, the norm's scale and
/// shift.
struct EmbeddingInputs {
  std::optional<int64_t> positions; ///< number of their ids
  /// Where the parameters of inputs 2 to 6 begin; none of floats.
  std::optional<ParameterInputs> parameters;
};

} // namespace

/// x, which is input `input` or rows of it, as floats.
static Value readFloats(Node &node, const EmbeddingInputs &inputs,
                        int64_t input, Value x) {
  if (!inputs.parameters)
    return x;
  int64_t i = input - 2;
  Value scale = readScalar(node, inputs.parameters->scale + i);
  Value zeroPoint = readScalar(node, inputs.parameters->zeroPoint + i);
  if (node.hasFailed() || !isQuantized(node, x))
    return nullptr;
  return dequantize(node, {x, scale, zeroPoint});
}

/// The rows of table `input` that the ids choose.
static Value embed(Node &node, const EmbeddingInputs &inputs, int64_t input,
                   Value ids) {
  return readFloats(node, inputs, input,
                    node.gather(node.input(input), ids, 0));
}

/// The embeddings of positions, [batch, length, features]; without positions
/// those from 0 on, [length, features].
static Value embedPositions(Node &node, const EmbeddingInputs &inputs,
                            AffineExpr length) {
  if (inputs.positions && node.hasInput(*inputs.positions))
    return embed(node, inputs, 3, node.input(*inputs.positions));
  Value rows =
      node.slice(node.input(3), 0, node.getSizes().constant(0), length);
  return readFloats(node, inputs, 3, rows);
}

/// The number of elements of each row of the mask that are 1; 0 without one.
static Value countMask(Node &node, AffineExpr batch) {
  Type index = IntegerType::get(node.getContext(), 32);
  if (!node.hasInput(7))
    return node.broadcast(node.constant(0, index), {batch});
  Value mask = node.input(7);
  if (!mask || node.rank(mask) != 2)
    return node.fail("a mask of rank 2 is expected");
  Value isOne =
      node.compare(graph::CompareKind::eq, mask, node.constantLike(1, mask));
  return node.reduce(graph::ReduceKind::sum, node.cast(isOne, index), {1},
                     false);
}

static void importEmbeddings(Node &node, const EmbeddingInputs &inputs) {
  Value ids = node.input(0), words = node.input(2);
  Value scale = readFloats(node, inputs, 5, node.input(5));
  Value shift = readFloats(node, inputs, 6, node.input(6));
  if (!ids || !words || node.hasFailed())
    return;
  if (node.rank(ids) != 2 || node.rank(words) != 2 || node.inputRank(3) != 2)
    return (void)node.fail("ids and tables of rank 2 are expected");
  if (node.hasInput(1) != node.hasInput(4))
    return (void)node.fail("segment_ids goes with segment_embedding");
  Value sum = node.add(embed(node, inputs, 2, ids),
                       embedPositions(node, inputs, graph::getExtent(ids, 1)));
  if (node.hasInput(1))
    sum = node.add(sum, embed(node, inputs, 4, node.input(1)));
  graph::Extents extents = node.extents(ids);
  extents.push_back(graph::getExtent(words, 1));
  if (sum && node.extents(sum) != extents)
    return (void)node.fail("ids and tables do not fit together");
  double epsilon = node.floatAttr("epsilon", 1e-12);
  if (!checkFeatures(node, sum, {scale, shift}))
    return;
  node.setResult(0, emitLayerNorm(node, sum, 2, epsilon, scale, shift));
  if (node.hasOutput(1))
    node.setResult(1, countMask(node, graph::getExtent(ids, 0)));
  node.setResult(2, sum);
}

static void importEmbedLayerNormalization(Node &node) {
  importEmbeddings(node, {8, std::nullopt});
}

static void importQEmbedLayerNormalization(Node &node) {
  importEmbeddings(node, {std::nullopt, ParameterInputs{8, 13}});
}

static const OpRow rows[] = {
    {"EmbedLayerNormalization", 1, 1, importEmbedLayerNormalization,
     kOrtDomain},
    {"QEmbedLayerNormalization", 1, 1, importQEmbedLayerNormalization,
     kOrtDomain},
    {"SkipLayerNormalization", 1, 1, importSkipLayerNormalization, kOrtDomain},
    {"SkipSimplifiedLayerNormalization", 1, 1, importSkipRmsNormalization,
     kOrtDomain},
};

ArrayRef<OpRow> getFusedNormalizationOps() { return rows; }

} // namespace tcc::onnx_import
