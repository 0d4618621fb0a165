#include "frontends/onnx/Normalization.h"
#include "frontends/onnx/Ops.h"
#include "frontends/onnx/Window.h"

#include <charconv>

using namespace mlir;
using tcc::graph::ReduceKind;

namespace tcc::onnx_import {

// --- Softmax -----------------------------------------------------------------

/// Applies `body(x, axis)`. Before version 13 the axes from `axis` on count as
/// one.
static void importAlongAxis(Node &node,
                            llvm::function_ref<Value(Value, int64_t)> body) {
  Value x = node.input(0);
  if (!x)
    return;
  bool isOld = node.getVersion() < 13;
  int64_t rank = node.rank(x);
  int64_t given = node.intAttr("axis", isOld ? 1 : -1);
  int64_t axis = isOld && given == rank ? rank : node.axis(given, rank);
  if (node.hasFailed())
    return;
  if (!isOld || axis == rank - 1)
    return node.setResult(0, body(x, axis));
  graph::Extents extents = node.extents(x);
  Size outer = node.getSizes().product(ArrayRef(extents).take_front(axis));
  Size inner = node.getSizes().product(ArrayRef(extents).drop_front(axis));
  if (!outer || !inner)
    return (void)node.fail("the input is too large");
  Value flat = node.reshape(x, {*outer, *inner});
  node.setResult(0, node.reshape(flat ? body(flat, 1) : nullptr, extents));
}

template <typename OpTy> static void importSoftmax(Node &node) {
  importAlongAxis(node, [&](Value x, int64_t axis) {
    return node.create<OpTy>(x, {node.attr("axis", axis)});
  });
}

/// 1 at the first largest element, else 0.
static void importHardmax(Node &node) {
  importAlongAxis(node, [&](Value x, int64_t axis) {
    auto kind = graph::ReduceKindAttr::get(node.getContext(), ReduceKind::max);
    Value index = node.unsqueeze(
        node.create<graph::ArgReduceOp>(
            x, {node.attr("kind", kind), node.attr("axis", axis)}),
        {axis});
    Value position = node.iota(node.extents(x), axis,
                               IntegerType::get(node.getContext(), 64));
    Value isLargest = node.compare(graph::CompareKind::eq, position, index);
    return isLargest ? node.cast(isLargest, node.elementType(x)) : nullptr;
  });
}

// --- Normalization over trailing axes ----------------------------------------

static SmallVector<int64_t> axesFrom(int64_t first, int64_t rank) {
  SmallVector<int64_t> axes;
  for (int64_t axis = first; axis < rank; ++axis)
    axes.push_back(axis);
  return axes;
}

/// The second and third results of LayerNormalization, in f32.
static void setMoments(Node &node, Value x, int64_t axis, double epsilon) {
  Type real = Float32Type::get(node.getContext());
  Value wide = node.elementType(x).isF64() ? x : node.cast(x, real);
  SmallVector<int64_t> axes = axesFrom(axis, node.rank(x));
  Value mean = node.mean(wide, axes);
  if (node.hasOutput(1))
    node.setResult(1, mean);
  if (!node.hasOutput(2))
    return;
  Value variance = node.variance(wide, mean, axes);
  node.setResult(2, node.create<graph::RsqrtOp>(node.add(
                        variance, node.constantLike(epsilon, variance))));
}

Value emitLayerNorm(Node &node, Value x, int64_t axis, double epsilon,
                    Value scale, Value shift) {
  graph::Extents extents = node.extents(x);
  ArrayRef<AffineExpr> normalized = ArrayRef(extents).drop_front(axis);
  // ONNX lets scale and shift broadcast to the normalized axes.
  bool fits = ArrayRef(node.extents(scale)) == normalized &&
              (!shift || ArrayRef(node.extents(shift)) == normalized);
  Value result = node.layerNorm(x, axis, epsilon, fits ? scale : nullptr,
                                fits ? shift : nullptr);
  if (!fits)
    result = node.mul(result, scale);
  return fits || !shift ? result : node.add(result, shift);
}

static void importLayerNormalization(Node &node) {
  Value x = node.input(0), scale = node.input(1);
  Value shift = node.hasInput(2) ? node.input(2) : nullptr;
  double epsilon = node.floatAttr("epsilon", 1e-5);
  int64_t axis = node.axis(node.intAttr("axis", -1), node.rank(x));
  if (node.hasFailed())
    return;
  node.setResult(0, emitLayerNorm(node, x, axis, epsilon, scale, shift));
  if (node.hasOutput(1) || node.hasOutput(2))
    setMoments(node, x, axis, epsilon);
}

Value emitRmsNorm(Node &node, Value x, int64_t axis, double epsilon,
                  Value scale) {
  graph::Extents extents = node.extents(x);
  Type type = node.elementType(scale);
  bool fits =
      ArrayRef(node.extents(scale)) == ArrayRef(extents).drop_front(axis) &&
      type == node.elementType(x);
  SmallVector<Value> operands = {x};
  if (fits)
    operands.push_back(scale);
  Value normal = node.create<graph::RmsNormOp>(
      operands, {node.attr("axis", axis), node.attr("epsilon", epsilon)});
  return fits ? normal : node.mul(node.cast(normal, type), scale);
}

static void importRmsNormalization(Node &node) {
  Value x = node.input(0), scale = node.input(1);
  int64_t axis = node.axis(node.intAttr("axis", -1), node.rank(x));
  double epsilon = node.floatAttr("epsilon", 1e-5);
  if (scale && !node.hasFailed())
    node.setResult(0, emitRmsNorm(node, x, axis, epsilon, scale));
}

// --- Normalization per channel -----------------------------------------------

static bool checkChannels(Node &node, Value x, ArrayRef<Value> vectors) {
  if (!x || llvm::is_contained(vectors, Value()))
    return false;
  if (node.rank(x) < 2)
    return node.fail("an input of rank 2 or more is expected") != nullptr;
  for (Value vector : vectors)
    if (node.rank(vector) != 1)
      return node.fail("vectors of one element a channel are expected") !=
             nullptr;
  return true;
}

/// Normalizes with the batch's own statistics and updates the running ones.
static void importBatchNormTraining(Node &node, ArrayRef<Value> inputs,
                                    double epsilon) {
  Value x = inputs[0];
  SmallVector<int64_t> axes = {0};
  axes.append(axesFrom(2, node.rank(x)));
  Value mean = node.mean(x, axes);
  Value variance = node.variance(x, mean, axes);
  Value deviation = node.create<graph::SqrtOp>(
      node.add(variance, node.constantLike(epsilon, x)));
  Value normal = node.div(node.sub(x, mean), deviation);
  Value scaled = node.mul(normal, node.alongChannels(inputs[1], x));
  node.setResult(0, node.add(scaled, node.alongChannels(inputs[2], x)));
  double momentum = node.floatAttr("momentum", 0.9);
  auto update = [&](Value running, Value current) {
    Value kept = node.mul(running, node.constantLike(momentum, running));
    Value batch = node.squeeze(current, axes);
    return node.add(kept,
                    node.mul(batch, node.constantLike(1 - momentum, batch)));
  };
  if (node.hasOutput(1))
    node.setResult(1, update(inputs[3], mean));
  if (node.hasOutput(2))
    node.setResult(2, update(inputs[4], variance));
}

/// The number with the fewest digits that rounds to `value`: what its author
/// wrote.
static double getDecimal(float value) {
  char text[32];
  char *end = std::to_chars(text, std::end(text), value).ptr;
  double decimal = value;
  std::from_chars(text, end, decimal);
  return decimal;
}

static void importBatchNormalization(Node &node) {
  SmallVector<Value> inputs;
  for (int64_t i = 0; i < 5; ++i)
    inputs.push_back(node.input(i));
  if (!checkChannels(node, inputs[0], ArrayRef(inputs).drop_front()))
    return;
  double epsilon = node.floatAttr("epsilon", 1e-5);
  if (node.intAttr("spatial", 1) == 0)
    return (void)node.unsupported("statistics of each position (spatial = 0)");
  if (node.intAttr("training_mode", 0) != 0)
    return importBatchNormTraining(node, inputs, epsilon);
  // ONNX's is the part of the running statistics that stays.
  double momentum = 1 - getDecimal(node.floatAttr("momentum", 0.9));
  // The statistics may have another type than x.
  for (Value &vector : MutableArrayRef(inputs).drop_front())
    vector = node.cast(vector, node.elementType(inputs[0]));
  node.setResult(0, node.create<graph::BatchNormOp>(
                        inputs, {node.attr("epsilon", epsilon),
                                 node.attr("momentum", momentum)}));
}

static void importInstanceNormalization(Node &node) {
  Value x = node.input(0), scale = node.input(1), shift = node.input(2);
  if (!checkChannels(node, x, {scale, shift}))
    return;
  double epsilon = node.floatAttr("epsilon", 1e-5);
  Value normal = node.layerNorm(x, 2, epsilon);
  Value scaled = node.mul(normal, node.alongChannels(scale, x));
  node.setResult(0, node.add(scaled, node.alongChannels(shift, x)));
}

static void importGroupNormalization(Node &node) {
  Value x = node.input(0), scale = node.input(1), shift = node.input(2);
  int64_t groups = node.intAttr("num_groups", 0);
  if (!checkChannels(node, x, {scale, shift}))
    return;
  graph::Extents extents = node.extents(x);
  auto channels = graph::getConstant(extents[1]);
  if (!channels || groups < 1 || *channels % groups != 0)
    return (void)node.fail("num_groups does not divide the channels");
  // [batch, group, channel of it, ...]
  graph::Extents grouped = extents;
  grouped[1] = node.getSizes().constant(*channels / groups);
  grouped.insert(grouped.begin() + 1, node.getSizes().constant(groups));
  double epsilon = node.floatAttr("epsilon", 1e-5);
  Value split = node.reshape(x, grouped);
  Value normal = node.layerNorm(split, 2, epsilon);
  bool isPerGroup = node.getVersion() < 21;
  if (!isPerGroup)
    normal = node.reshape(normal, extents);
  Value scaled = node.mul(normal, node.alongChannels(scale, normal));
  Value result = node.add(scaled, node.alongChannels(shift, normal));
  node.setResult(0, node.reshape(result, extents));
}

static void importMeanVarianceNormalization(Node &node) {
  Value x = node.input(0);
  auto given = node.intsAttr("axes");
  SmallVector<int64_t> axes =
      node.axes(given.value_or(SmallVector<int64_t>{0, 2, 3}), node.rank(x));
  if (node.hasFailed())
    return;
  Value mean = node.mean(x, axes);
  Value variance = node.variance(x, mean, axes);
  Value deviation = node.add(node.create<graph::SqrtOp>(variance),
                             node.constantLike(1e-9, x));
  node.setResult(0, node.div(node.sub(x, mean), deviation));
}

static void importLpNormalization(Node &node) {
  Value x = node.input(0);
  int64_t axis = node.axis(node.intAttr("axis", -1), node.rank(x));
  int64_t p = node.intAttr("p", 2);
  if (node.hasFailed())
    return;
  if (p != 1 && p != 2)
    return (void)node.fail("p must be 1 or 2");
  Value parts = p == 1 ? node.create<graph::AbsOp>(x) : node.mul(x, x);
  Value sum = node.reduce(ReduceKind::sum, parts, {axis}, true);
  // A zero vector stays zero.
  Value isZero =
      node.compare(graph::CompareKind::eq, sum, node.constantLike(0, x));
  Value divisor = node.select(isZero, node.constantLike(1, x), sum);
  if (p == 2)
    divisor = node.create<graph::SqrtOp>(divisor);
  node.setResult(0, node.div(x, divisor));
}

/// x / (bias + alpha / size * sum of squares over `size` channels)^beta
static void importLrn(Node &node) {
  Value x = node.input(0);
  int64_t size = node.intAttr("size", 0);
  if (!checkChannels(node, x, {}))
    return;
  if (size < 1 || size > kMaxWindow)
    return (void)node.fail("size is out of range");
  graph::Extents extents = node.extents(x);
  Size inner = node.getSizes().product(ArrayRef(extents).drop_front(2));
  if (!inner)
    return (void)node.fail("the input is too large");
  // [batch, 1, channel, inner]: a window over the channels.
  AffineExpr one = node.getSizes().constant(1);
  Value squares =
      node.reshape(node.mul(x, x), {extents[0], one, extents[1], *inner});
  Window window({size, 1});
  window.low = {(size - 1) / 2, 0};
  window.high = {size - 1 - (size - 1) / 2, 0};
  Value sums = emitPool(node, graph::PoolKind::sum, squares, window);
  double alpha = node.floatAttr("alpha", 1e-4),
         beta = node.floatAttr("beta", 0.75);
  Value scaled =
      node.mul(node.reshape(sums, extents), node.constantLike(alpha / size, x));
  Value base =
      node.add(scaled, node.constantLike(node.floatAttr("bias", 1), x));
  Value divisor =
      node.pointwise<graph::PowOp>({base, node.constantLike(beta, x)});
  node.setResult(0, node.div(x, divisor));
}

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"BatchNormalization", 7, last, importBatchNormalization},
    {"GroupNormalization", 18, last, importGroupNormalization},
    {"Hardmax", 1, last, importHardmax},
    {"InstanceNormalization", 1, last, importInstanceNormalization},
    {"LRN", 1, last, importLrn},
    // onnxruntime writes it into models of older sets, too.
    {"LayerNormalization", 1, last, importLayerNormalization},
    {"LogSoftmax", 1, last, importSoftmax<graph::LogSoftmaxOp>},
    {"LpNormalization", 1, last, importLpNormalization},
    {"MeanVarianceNormalization", 9, last, importMeanVarianceNormalization},
    {"RMSNormalization", 23, last, importRmsNormalization},
    // onnxruntime's name for it, in the set of ONNX.
    {"SimplifiedLayerNormalization", 1, last, importRmsNormalization},
    {"Softmax", 1, last, importSoftmax<graph::SoftmaxOp>},
};

ArrayRef<OpRow> getNormalizationOps() { return rows; }

} // namespace tcc::onnx_import
