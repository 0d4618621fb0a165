//===- QuantizedForms.cpp - Float operators of quantized operands ---------===//
//
// For a float operator between DequantizeLinear and QuantizeLinear onnxruntime
// writes one operator of integers, scales and zero points. Each becomes those
// three again.
//
//===----------------------------------------------------------------------===//
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/Quantization.h"

using namespace mlir;

namespace tcc::onnx_import {

/// Input `first` of integers as the floats that they stand for by the scale and
/// the zero point in the next inputs.
static Value readFloats(Node &node, int64_t first) {
  Value values = node.input(first), scale = readScalar(node, first + 1);
  Value zeroPoint = readScalarZeroPoint(node, first + 2);
  if (!values || !isQuantized(node, values))
    return nullptr;
  return node.hasFailed() ? nullptr
                          : dequantize(node, {values, scale, zeroPoint});
}

/// x quantized to `type` by the scale that is input `first`, and the zero point
/// that is the next one, if it is there.
static Value quantize(Node &node, Value x, int64_t first, Type type) {
  Value scale = readScalar(node, first);
  if (!x || !scale)
    return nullptr;
  Value zeroPoint = readScalarZeroPoint(node, first + 1);
  if (node.hasFailed() || (zeroPoint && !isQuantized(node, zeroPoint)))
    return nullptr;
  return saturate(node, node.div(x, scale), zeroPoint,
                  zeroPoint ? node.elementType(zeroPoint) : type);
}

namespace {

/// Inputs are `plainCount` operands as they are, `count` quantized ones, and
/// the result's scale and zero point.
struct QuantizedForm {
  StringLiteral name, op;
  int64_t version; ///< of `op`
  int64_t plainCount, count;
};

} // namespace

static constexpr QuantizedForm forms[] = {
    {"QLinearAdd", "Add", 14, 0, 2},
    {"QLinearAveragePool", "AveragePool", 19, 0, 1},
    {"QLinearGlobalAveragePool", "GlobalAveragePool", 1, 0, 1},
    {"QLinearLeakyRelu", "LeakyRelu", 16, 0, 1},
    {"QLinearMul", "Mul", 14, 0, 2},
    {"QLinearSigmoid", "Sigmoid", 13, 0, 1},
    {"QLinearWhere", "Where", 16, 1, 2},
};

static void importForm(Node &node, const QuantizedForm &form) {
  if (node.intAttr("channels_last", 0) != 0)
    return (void)node.unsupported("attribute 'channels_last'");
  // onnxruntime counts windows' cells beyond the padding, too.
  if (node.intAttr("ceil_mode", 0) != 0 &&
      node.intAttr("count_include_pad", 0) != 0)
    return (void)node.unsupported("ceil_mode with count_include_pad");
  SmallVector<Value> operands;
  int64_t input = 0;
  for (; input < form.plainCount; ++input)
    operands.push_back(node.input(input));
  Type type;
  for (int64_t i = 0; i < form.count; ++i, input += 3) {
    type = node.elementType(input);
    operands.push_back(readFloats(node, input));
  }
  Value result = node.apply(form.op, form.version, operands);
  node.setResult(0, quantize(node, result, input, type));
}

static void importQuantizedForm(Node &node) {
  for (const QuantizedForm &form : forms)
    if (form.name == node.getOpType())
      return importForm(node, form);
  llvm_unreachable("a row without a form");
}

/// Softmax of the version that an attribute tells. Without an axis it is the
/// last one's, of which all versions make the same.
static void importQLinearSoftmax(Node &node) {
  constexpr int64_t kOfLastAxis = 13;
  int64_t version =
      node.findAttr("axis") ? node.intAttr("opset", kOfLastAxis) : kOfLastAxis;
  importForm(node, {"QLinearSoftmax", "Softmax", version, 0, 1});
}

/// The result's scale and zero point come first.
static void importQLinearConcat(Node &node) {
  SmallVector<Value> parts;
  for (int64_t input = 2; input < node.getNumInputs(); input += 3)
    parts.push_back(readFloats(node, input));
  Value joined = node.apply("Concat", 13, parts);
  Type type = node.elementType(1);
  node.setResult(0, quantize(node, joined, 0, type));
}

// --- Products ----------------------------------------------------------------

/// Input `input`, [rows, columns] after a transposition that `attribute` asks.
static Value readMatrix(Node &node, int64_t input, StringRef attribute) {
  Value x = node.input(input);
  if (!x)
    return nullptr;
  if (node.rank(x) != 2)
    return node.fail("matrices are expected");
  return node.intAttr(attribute, 0) != 0 ? node.transpose(x, {1, 0}) : x;
}

/// x + addend, which must broadcast to x.
static Value addWithin(Node &node, Value x, Value addend) {
  Value sum = x && addend ? node.add(x, addend) : nullptr;
  if (sum && sum.getType() != x.getType())
    return node.fail("the addend does not broadcast to the product");
  return sum;
}

/// alpha * (A * B + C) of floats, where C is of the accumulators' scale;
/// quantized if the result has a zero point. B's parameters may be one a
/// column.
static void importQGemm(Node &node) {
  Value a = readMatrix(node, 0, "transA"), b = readMatrix(node, 3, "transB");
  auto columns = b ? graph::getConstant(graph::getExtent(b, 1)) : std::nullopt;
  if (b && !columns)
    return (void)node.unsupported("a matrix B of dynamic shape");
  if (node.hasInput(7) != node.hasInput(8))
    return (void)node.unsupported("a scale or zero point of the result alone");
  Value lhsScale = readScalar(node, 1), lhsZeroPoint = readScalar(node, 2);
  if (!a || !lhsScale || !lhsZeroPoint)
    return;
  Value rhsScale = readColumns(node, 4, *columns);
  Value product =
      node.product(center(node, a, lhsZeroPoint, 2),
                   center(node, b, readColumns(node, 5, *columns), 1));
  if (node.hasInput(6))
    product = addWithin(node, product, node.input(6));
  Value alpha = node.constantLike(node.floatAttr("alpha", 1), lhsScale);
  Value result =
      scaleProduct(node, product, node.mul(lhsScale, alpha), rhsScale);
  if (node.hasInput(8))
    result = quantize(node, result, 7, node.elementType(0));
  node.setResult(0, result);
}

/// Integers of `bits` bits, 2, 4 or 8, packed from a byte's lowest bits on
/// along the last axis, as floats of `type`; the axis is joined to `count`.
static Value unpackBits(Node &node, Value bytes, int64_t bits, AffineExpr count,
                        Type type) {
  Value mask = node.constantLike((1 << bits) - 1, bytes);
  SmallVector<Value> parts;
  int64_t rank = node.rank(bytes);
  for (int64_t shift = 0; shift < 8; shift += bits) {
    Value moved = node.pointwise<graph::ShiftRightOp>(
        {bytes, node.constantLike(shift, bytes)});
    Value part = node.pointwise<graph::AndOp>({moved, mask});
    parts.push_back(node.unsqueeze(node.cast(part, type), {rank}));
  }
  graph::Extents extents = node.extents(bytes);
  extents.back() = count;
  return node.reshape(node.concat(parts, rank), extents);
}

namespace {

/// B of MatMulNBits: blocks of `size` integers along K.
struct BlockedWeights {
  int64_t rows, columns; ///< N and K
  int64_t bits, size, blocks;
};

} // namespace

static std::optional<BlockedWeights> readBlockedWeights(Node &node) {
  BlockedWeights weights = {node.intAttr("N", 0), node.intAttr("K", 0),
                            node.intAttr("bits", 4),
                            node.intAttr("block_size", 0), 0};
  auto isSize = [](int64_t size) { return size > 0 && size <= kMaxElements; };
  if (!isSize(weights.rows) || !isSize(weights.columns) ||
      !isSize(weights.size)) {
    node.fail("positive sizes N, K and block_size are expected");
    return std::nullopt;
  }
  if (!llvm::is_contained({2, 4, 8}, weights.bits)) {
    node.unsupported("integers of " + llvm::Twine(weights.bits) + " bits");
    return std::nullopt;
  }
  weights.blocks = (weights.columns + weights.size - 1) / weights.size;
  return weights;
}

/// Input `input` with these extents, or with them in one axis.
static Value readBlocks(Node &node, int64_t input, ArrayRef<int64_t> extents) {
  Value x = node.input(input);
  if (!x)
    return nullptr;
  auto type = cast<RankedTensorType>(x.getType());
  if (!type.hasStaticShape())
    return node.unsupported("weights of dynamic shape");
  int64_t count = 1;
  for (int64_t extent : extents)
    if (llvm::MulOverflow(count, extent, count))
      return node.fail("the weights are too large");
  if (type.getNumElements() != count)
    return node.fail("input " + llvm::Twine(input) + " does not have the " +
                     llvm::Twine(count) +
                     " elements that N, K, bits and block_size ask for");
  graph::Extents wanted;
  for (int64_t extent : extents)
    wanted.push_back(node.getSizes().constant(extent));
  return node.reshape(x, wanted);
}

/// [N, blocks, 1] of the weights' type: given as floats, packed or neither.
static Value readBlockZeroPoints(Node &node, const BlockedWeights &weights,
                                 Type type) {
  const Sizes &sizes = node.getSizes();
  if (!node.hasInput(3))
    return node.constant(double(int64_t(1) << (weights.bits - 1)), type);
  if (isa<FloatType>(node.elementType(3)))
    return node.cast(readBlocks(node, 3, {weights.rows, weights.blocks, 1}),
                     type);
  int64_t perByte = 8 / weights.bits;
  int64_t bytes = (weights.blocks + perByte - 1) / perByte;
  Value packed = readBlocks(node, 3, {weights.rows, bytes});
  if (!packed)
    return nullptr;
  Value all = unpackBits(node, packed, weights.bits,
                         sizes.constant(bytes * perByte), type);
  return node.unsqueeze(node.slice(all, 1, 0, weights.blocks), {2});
}

static void importMatMulNBits(Node &node) {
  if (node.hasInput(4))
    return (void)node.unsupported("input 'g_idx'");
  if (node.intAttr("weight_prepacked", 0) != 0)
    return (void)node.unsupported("attribute 'weight_prepacked'");
  Value x = node.input(0);
  auto weights = readBlockedWeights(node);
  if (!x || !weights)
    return;
  auto [rows, columns, bits, size, blocks] = *weights;
  if (size * bits % 8 != 0)
    return (void)node.fail("blocks of whole bytes are expected");
  Type byte = IntegerType::get(node.getContext(), 8, IntegerType::Unsigned);
  Type type = node.elementType(x);
  if (node.elementType(1) != byte)
    return (void)node.fail("weights packed in bytes are expected");
  if (!isa<FloatType>(type) || node.elementType(2) != type)
    return (void)node.fail("an input and scales of one float type are "
                           "expected");
  if (node.hasInput(3) && node.elementType(3) != byte &&
      !isa<FloatType>(node.elementType(3)))
    return (void)node.fail("zero points in bytes or of floats are expected");
  Value packed = readBlocks(node, 1, {rows, blocks, size * bits / 8});
  Value scales = readBlocks(node, 2, {rows, blocks, 1});
  if (!packed || !scales)
    return;
  const Sizes &sizes = node.getSizes();
  Quantized blocked = {
      unpackBits(node, packed, bits, sizes.constant(size), type), scales,
      readBlockZeroPoints(node, *weights, type)};
  if (node.hasFailed())
    return;
  Value all =
      node.reshape(dequantize(node, blocked),
                   {sizes.constant(rows), sizes.constant(blocks * size)});
  Value filters = node.slice(all, 1, 0, columns);
  Value result = node.product(x, node.transpose(filters, {1, 0}));
  if (node.hasInput(5))
    result = addWithin(node, result, node.input(5));
  node.setResult(0, result);
}

static const OpRow rows[] = {
    {"MatMulNBits", 1, 1, importMatMulNBits, kOrtDomain},
    {"QGemm", 1, 1, importQGemm, kOrtDomain},
    {"QLinearAdd", 1, 1, importQuantizedForm, kOrtDomain},
    {"QLinearAveragePool", 1, 1, importQuantizedForm, kOrtDomain},
    {"QLinearConcat", 1, 1, importQLinearConcat, kOrtDomain},
    {"QLinearGlobalAveragePool", 1, 1, importQuantizedForm, kOrtDomain},
    {"QLinearLeakyRelu", 1, 1, importQuantizedForm, kOrtDomain},
    {"QLinearMul", 1, 1, importQuantizedForm, kOrtDomain},
    {"QLinearSigmoid", 1, 1, importQuantizedForm, kOrtDomain},
    {"QLinearSoftmax", 1, 1, importQLinearSoftmax, kOrtDomain},
    {"QLinearWhere", 1, 1, importQuantizedForm, kOrtDomain},
};

ArrayRef<OpRow> getQuantizedFormOps() { return rows; }

} // namespace tcc::onnx_import
