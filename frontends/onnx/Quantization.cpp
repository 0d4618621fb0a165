#include "frontends/onnx/Quantization.h"

#include "frontends/onnx/Literals.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/Window.h"

using namespace mlir;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

static Type getInt32(Node &node) {
  return IntegerType::get(node.getContext(), 32);
}

/// The smallest and largest integer of so many bits.
static std::pair<double, double> getLimits(unsigned width, bool isUnsigned) {
  if (isUnsigned)
    return {0, std::ldexp(1.0, width) - 1};
  return {-std::ldexp(1.0, width - 1), std::ldexp(1.0, width - 1) - 1};
}

static std::pair<double, double> getLimits(Type type) {
  return getLimits(type.getIntOrFloatBitWidth(), type.isUnsignedInteger());
}

/// round(x) + zeroPoint, clamped to the numbers from `low` to `high`.
static Value roundWithin(Node &node, Value x, Value zeroPoint,
                         std::pair<double, double> limits) {
  Value rounded = node.create<graph::RoundOp>(x);
  if (zeroPoint)
    rounded =
        node.add(rounded, node.cast(zeroPoint, node.elementType(rounded)));
  return node.min(node.max(rounded, node.constantLike(limits.first, x)),
                  node.constantLike(limits.second, x));
}

Value saturate(Node &node, Value x, Value zeroPoint, Type type) {
  if (!x)
    return nullptr;
  if (!isa<IntegerType>(type))
    return node.unsupported("quantization to floats");
  return node.cast(roundWithin(node, x, zeroPoint, getLimits(type)), type);
}

/// A scale or zero point as a tensor that broadcasts to x: a scalar, one
/// element along `axis`, or one a block of `axis`.
static Value spreadParameter(Node &node, Value parameter, Value x) {
  if (!parameter || !x)
    return nullptr;
  int64_t rank = node.rank(x), block = node.intAttr("block_size", 0);
  if (block == 0 && node.rank(parameter) == 0)
    return parameter;
  if (node.rank(parameter) == 1 &&
      graph::getConstant(graph::getExtent(parameter, 0)) == 1)
    return node.reshape(parameter, {});
  int64_t axis = node.axis(node.intAttr("axis", 1), rank);
  if (node.hasFailed())
    return nullptr;
  if (block == 0 && node.rank(parameter) == 1) {
    graph::Extents extents(rank, node.getSizes().constant(1));
    extents[axis] = graph::getExtent(parameter, 0);
    return node.reshape(parameter, extents);
  }
  auto count = graph::getConstant(graph::getExtent(x, axis));
  if (node.rank(parameter) != rank || block < 1 || !count)
    return node.fail("scale and zero point do not fit the input");
  // [..., blocks, 1, ...] repeated to [..., blocks, block, ...], then joined.
  Value split = node.unsqueeze(parameter, {axis + 1});
  auto blocks = graph::getConstant(graph::getExtent(parameter, axis));
  if (!split || !blocks || *blocks > kMaxElements / block ||
      *blocks * block < *count)
    return node.fail("blocks do not cover the input");
  Value repeated = node.broadcast(
      split, node.withExtent(split, axis + 1, node.getSizes().constant(block)));
  graph::Extents joined = node.withExtent(
      parameter, axis, node.getSizes().constant(*blocks * block));
  return node.slice(node.reshape(repeated, joined), axis, 0, *count);
}

/// The element type that an attribute names, or `fallback` where it names none.
static Type readType(Node &node, StringRef name, Type fallback) {
  int64_t number = node.intAttr(name, 0);
  Type type = number ? getElementType(number, node.getContext()) : fallback;
  if (!type)
    node.unsupported("element type " + getTypeName(number));
  return type;
}

/// The narrow type that QuantizeLinear gives; null for one of the module's.
static const NarrowType *getNarrowResult(Node &node) {
  return node.hasInput(2) ? node.narrowType(2)
                          : findNarrowType(node.intAttr("output_dtype", 0));
}

/// `ratio` as elements of a narrow type.
static void quantizeToNarrow(Node &node, Value ratio, Value zeroPoint,
                             const NarrowType &type) {
  if (!ratio)
    return;
  if (!type.isFloat)
    ratio = roundWithin(node, ratio, zeroPoint,
                        getLimits(type.bits, type.isUnsigned));
  else if (zeroPoint) // which is 0, and makes 0 of -0
    ratio = node.add(ratio, node.cast(zeroPoint, node.elementType(ratio)));
  bool saturates = node.intAttr("saturate", 1) != 0;
  node.setNarrow(0, encode(node, ratio, type, saturates), type);
}

static void importQuantizeLinear(Node &node) {
  Value x = node.input(0), scale = node.input(1);
  Value zeroPoint = node.hasInput(2) ? node.input(2) : nullptr;
  if (!x || !scale)
    return;
  const NarrowType *narrow = getNarrowResult(node);
  Type type = IntegerType::get(node.getContext(), 8, IntegerType::Unsigned);
  if (zeroPoint)
    type = node.elementType(zeroPoint);
  else if (!narrow)
    type = readType(node, "output_dtype", type);
  Type precision = readType(node, "precision", node.elementType(scale));
  if (node.hasFailed())
    return;
  if (!isa<FloatType>(precision))
    return (void)node.unsupported("division of integers by their scale");
  Value divisor = node.cast(spreadParameter(node, scale, x), precision);
  Value ratio = node.div(node.cast(x, precision), divisor);
  Value shift = zeroPoint ? spreadParameter(node, zeroPoint, x) : nullptr;
  if (narrow)
    return quantizeToNarrow(node, ratio, shift, *narrow);
  node.setResult(0, saturate(node, ratio, shift, type));
}

Value dequantize(Node &node, const Quantized &x) {
  if (!x.values || !x.scale)
    return nullptr;
  Type type = node.elementType(x.scale);
  Value wide = node.cast(x.values, type);
  if (x.zeroPoint)
    wide = node.sub(wide, node.cast(x.zeroPoint, type));
  return node.mul(wide, x.scale);
}

static void importDequantizeLinear(Node &node) {
  Value x = node.input(0), scale = node.input(1);
  if (!x || !scale)
    return;
  Type type = readType(node, "output_dtype", node.elementType(scale));
  Value factor = node.cast(spreadParameter(node, scale, x), type);
  Value zeroPoint = readZeroPoint(node, 2);
  if (zeroPoint)
    zeroPoint = spreadParameter(node, zeroPoint, x);
  node.setResult(0, dequantize(node, {x, factor, zeroPoint}));
}

Quantized quantizeByRange(Node &node, Value x) {
  if (!isa<FloatType>(node.elementType(x))) {
    node.fail("an input of floats is expected");
    return {};
  }
  SmallVector<int64_t> axes;
  for (int64_t axis = 0; axis < node.rank(x); ++axis)
    axes.push_back(axis);
  Value zero = node.constantLike(0, x), steps = node.constantLike(255, x);
  Value low = node.min(node.reduce(ReduceKind::min, x, axes, false), zero);
  Value high = node.max(node.reduce(ReduceKind::max, x, axes, false), zero);
  Value span = node.div(node.sub(high, low), steps);
  // All zeros: any scale does.
  Value isFlat = node.compare(graph::CompareKind::eq, span, zero);
  Value scale = node.select(isFlat, node.constantLike(1, x), span);
  Type type = IntegerType::get(node.getContext(), 8, IntegerType::Unsigned);
  Value offset = node.div(node.sub(zero, low), scale);
  Value zeroPoint = saturate(node, offset, nullptr, type);
  return {saturate(node, node.div(x, scale), zeroPoint, type), scale,
          zeroPoint};
}

static void importDynamicQuantizeLinear(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  auto [values, scale, zeroPoint] = quantizeByRange(node, x);
  node.setResult(0, values);
  node.setResult(1, scale);
  node.setResult(2, zeroPoint);
}

Value readZeroPoint(Node &node, int64_t input) {
  return node.hasInput(input) ? node.input(input) : nullptr;
}

Value readScalar(Node &node, int64_t input) {
  Value parameter = node.input(input);
  if (!parameter)
    return nullptr;
  for (AffineExpr extent : graph::getExtents(parameter))
    if (graph::getConstant(extent) != 1)
      return node.unsupported("a scale or zero point of more than one element");
  return node.reshape(parameter, {});
}

Value readColumns(Node &node, int64_t input, int64_t columns) {
  Value parameter = node.input(input);
  if (!parameter)
    return nullptr;
  graph::Extents extents = node.extents(parameter);
  bool isVector =
      extents.size() == 1 && graph::getConstant(extents[0]) == columns;
  return isVector ? parameter : readScalar(node, input);
}

Value readScalarZeroPoint(Node &node, int64_t input) {
  return node.hasInput(input) ? readScalar(node, input) : nullptr;
}

// --- Integer products --------------------------------------------------------

bool isQuantized(Node &node, Value x) {
  Type type = node.elementType(x);
  if (type.isInteger(8) || type.isInteger(16))
    return true;
  return node.fail("integers of 8 or 16 bits are expected") != nullptr;
}

Value center(Node &node, Value x, Value zeroPoint, int64_t axisFromEnd) {
  if (!x || !isQuantized(node, x) ||
      (zeroPoint && !isQuantized(node, zeroPoint)))
    return nullptr;
  Value wide = node.cast(x, getInt32(node));
  if (!zeroPoint)
    return wide;
  zeroPoint = node.cast(zeroPoint, getInt32(node));
  if (!zeroPoint)
    return nullptr;
  if (node.rank(zeroPoint) == 1) {
    auto count = graph::getConstant(graph::getExtent(zeroPoint, 0));
    SmallVector<int64_t> trailing;
    for (int64_t i = 1; i < axisFromEnd; ++i)
      trailing.push_back(i);
    zeroPoint = count == 1 ? node.reshape(zeroPoint, {})
                           : node.unsqueeze(zeroPoint, trailing);
  }
  return node.sub(wide, zeroPoint);
}

/// The same with the zero point that an input is, if it is there.
static Value center(Node &node, Value x, int64_t zeroPointInput,
                    int64_t axisFromEnd) {
  return center(node, x, readZeroPoint(node, zeroPointInput), axisFromEnd);
}

static void importMatMulInteger(Node &node) {
  Value lhs = center(node, node.input(0), 2, 2);
  Value rhs = center(node, node.input(1), 3, 1);
  node.setResult(0, node.product(lhs, rhs));
}

Value scaleProduct(Node &node, Value product, Value lhsScale, Value rhsScale) {
  if (!product || !lhsScale || !rhsScale)
    return nullptr;
  Value scale = node.mul(lhsScale, rhsScale);
  return scale ? node.mul(node.cast(product, node.elementType(scale)), scale)
               : nullptr;
}

/// x plus the bias that an input is, if it is there.
static Value addBiasInput(Node &node, Value x, int64_t input) {
  return x && node.hasInput(input) ? node.add(x, node.input(input)) : x;
}

/// onnxruntime's MatMulInteger, Cast, Mul and Add in one. Like there A has one
/// scale.
static void importMatMulIntegerToFloat(Node &node) {
  Value lhsScale = readScalar(node, 2);
  Value product = node.product(center(node, node.input(0), 4, 2),
                               center(node, node.input(1), 5, 1));
  Value scaled = scaleProduct(node, product, lhsScale, node.input(3));
  node.setResult(0, addBiasInput(node, scaled, 6));
}

/// onnxruntime's DynamicQuantizeLinear with those behind it.
static void importDynamicQuantizeMatMul(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  auto [values, scale, zeroPoint] = quantizeByRange(node, x);
  Value product = node.product(center(node, values, zeroPoint, 2),
                               center(node, node.input(1), 3, 1));
  Value scaled = scaleProduct(node, product, scale, node.input(2));
  node.setResult(0, addBiasInput(node, scaled, 4));
}

static void importQLinearMatMul(Node &node) {
  Value product = node.product(center(node, node.input(0), 2, 2),
                               center(node, node.input(3), 5, 1));
  Value rhsScale = node.input(4), scale = node.input(6);
  Value lhsScale = node.input(1), zeroPoint = node.input(7);
  if (!product || !scale || !zeroPoint || !lhsScale)
    return;
  if (node.rank(lhsScale) == 1 &&
      graph::getConstant(graph::getExtent(lhsScale, 0)) != 1)
    lhsScale = node.unsqueeze(lhsScale, {1});
  Value ratio = node.div(node.mul(lhsScale, rhsScale), scale);
  Value scaled = node.mul(node.cast(product, node.elementType(scale)), ratio);
  node.setResult(
      0, saturate(node, scaled, zeroPoint, node.elementType(zeroPoint)));
}

/// Convolution of centered inputs in i32; the filter is input `filterInput`.
static Value emitIntegerConv(Node &node, int64_t filterInput,
                             int64_t xZeroPoint, int64_t filterZeroPoint) {
  Value x = node.input(0), filter = node.input(filterInput);
  if (!x || !filter)
    return nullptr;
  auto type = cast<RankedTensorType>(filter.getType());
  if (type.getRank() < 3 || type.getRank() != node.rank(x))
    return node.fail("input and filter of one rank, 3 or more, are expected");
  if (!type.hasStaticShape())
    return node.unsupported("a filter of dynamic shape");
  auto window = readWindow(node, x, type.getShape().drop_front(2));
  if (!window)
    return nullptr;
  return emitConv(node, center(node, x, xZeroPoint, 1),
                  center(node, filter, filterZeroPoint, type.getRank()),
                  *window, node.intAttr("group", 1));
}

static void importConvInteger(Node &node) {
  node.setResult(0, emitIntegerConv(node, 1, 2, 3));
}

static void importQLinearConv(Node &node) {
  Value result = emitIntegerConv(node, 3, 2, 5);
  Value filterScale = node.input(4), scale = node.input(6);
  Value zeroPoint = node.input(7);
  if (!result || !filterScale || !scale || !zeroPoint)
    return;
  if (node.hasInput(8))
    result = addBias(node, result, node.input(8));
  if (node.rank(filterScale) == 1) {
    SmallVector<int64_t> trailing;
    for (int64_t i = 1; i < node.rank(result) - 1; ++i)
      trailing.push_back(i);
    filterScale = node.unsqueeze(filterScale, trailing);
  }
  Value ratio = node.div(node.mul(node.input(1), filterScale), scale);
  Value scaled = node.mul(node.cast(result, node.elementType(scale)), ratio);
  node.setResult(
      0, saturate(node, scaled, zeroPoint, node.elementType(zeroPoint)));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"ConvInteger", 10, last, importConvInteger},
    {"DequantizeLinear", 10, last, importDequantizeLinear, "", true},
    {"DequantizeLinear", 1, 1, importDequantizeLinear, kOrtDomain, true},
    {"DynamicQuantizeLinear", 11, last, importDynamicQuantizeLinear},
    {"DynamicQuantizeMatMul", 1, 1, importDynamicQuantizeMatMul, kOrtDomain},
    {"MatMulInteger", 10, last, importMatMulInteger},
    {"MatMulIntegerToFloat", 1, 1, importMatMulIntegerToFloat, kOrtDomain},
    {"QLinearConv", 10, last, importQLinearConv},
    {"QLinearMatMul", 10, last, importQLinearMatMul},
    {"QuantizeLinear", 10, last, importQuantizeLinear, "", true},
    {"QuantizeLinear", 1, 1, importQuantizeLinear, kOrtDomain},
};

ArrayRef<OpRow> getQuantizationOps() { return rows; }

} // namespace tcc::onnx_import
