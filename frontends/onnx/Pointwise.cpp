#include "frontends/onnx/Folding.h"
#include "frontends/onnx/Ops.h"

using namespace mlir;

namespace tcc::onnx_import {

// --- Arithmetic --------------------------------------------------------------

template <typename OpTy> static void importUnary(Node &node) {
  node.setResult(0, node.create<OpTy>(node.input(0)));
}

template <typename OpTy> static void importBinary(Node &node) {
  node.setResult(0, node.pointwise<OpTy>({node.input(0), node.input(1)}));
}

template <typename OpTy, SizeOp op> static void importArithmetic(Node &node) {
  if (!foldBinary(node, op))
    importBinary<OpTy>(node);
}

/// Max, Min and Sum of any number of inputs.
template <typename OpTy, SizeOp op> static void importVariadic(Node &node) {
  if (foldBinary(node, op))
    return;
  Value result = node.input(0);
  for (int64_t i = 1; i < node.getNumInputs(); ++i)
    result = node.pointwise<OpTy>({result, node.input(i)});
  node.setResult(0, result);
}

static void importMean(Node &node) {
  Value sum = node.input(0);
  for (int64_t i = 1; i < node.getNumInputs(); ++i)
    sum = node.add(sum, node.input(i));
  node.setResult(0, node.div(sum, node.constantLike(node.getNumInputs(), sum)));
}

static void importMod(Node &node) {
  bool isFmod = node.intAttr("fmod", 0) != 0;
  if (foldBinary(node, isFmod ? SizeOp::rem : SizeOp::mod))
    return;
  if (isFmod)
    return importBinary<graph::RemOp>(node);
  if (isa<FloatType>(node.elementType(0)) && node.getVersion() < 28)
    node.fail("fmod must be 1 for floats");
  importBinary<graph::ModOp>(node);
}

/// The result has the base's type; the exponent may have any.
static void importPow(Node &node) {
  Value base = node.input(0), exponent = node.input(1);
  if (!base || !exponent)
    return;
  Type type = node.elementType(base);
  bool isMixed =
      isa<IntegerType>(type) && isa<FloatType>(node.elementType(exponent));
  Type common = isMixed ? Type(Float64Type::get(node.getContext())) : type;
  Value power = node.pointwise<graph::PowOp>(
      {node.cast(base, common), node.cast(exponent, common)});
  node.setResult(0, node.cast(power, type));
}

static void importClip(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  Value low, high;
  if (node.getVersion() < 11) {
    if (node.findAttr("min"))
      low = node.constantLike(node.floatAttr("min", 0), x);
    if (node.findAttr("max"))
      high = node.constantLike(node.floatAttr("max", 0), x);
  } else {
    low = node.hasInput(1) ? node.input(1) : nullptr;
    high = node.hasInput(2) ? node.input(2) : nullptr;
  }
  x = low ? node.max(x, low) : x;
  node.setResult(0, high ? node.min(x, high) : x);
}

// --- Comparison, choice, bits ------------------------------------------------

template <graph::CompareKind kind, SizeCompare sizeKind>
static void importCompare(Node &node) {
  if (!foldCompare(node, sizeKind))
    node.setResult(0, node.compare(kind, node.input(0), node.input(1)));
}

static void importWhere(Node &node) {
  if (node.getNumInputs() != 3)
    return (void)node.fail("3 inputs are expected");
  auto choose = [](ArrayRef<AffineExpr> elements) -> Size {
    auto condition = graph::getConstant(elements[0]);
    if (!condition)
      return elements[1] == elements[2] ? Size(elements[1]) : std::nullopt;
    return *condition ? elements[1] : elements[2];
  };
  if (!foldElementwise(node, node.elementType(1), choose))
    node.setResult(0, node.select(node.input(0), node.input(1), node.input(2)));
}

static void importNot(Node &node) {
  auto negate = [&](ArrayRef<AffineExpr> elements) -> Size {
    auto value = graph::getConstant(elements[0]);
    return value ? Size(node.getSizes().constant(!*value)) : std::nullopt;
  };
  if (!foldElementwise(node, node.elementType(0), negate))
    importUnary<graph::NotOp>(node);
}

/// Shifts to the right fill with the sign: those of -1 - x, which has none, are
/// turned back.
static void importBitShift(Node &node) {
  std::string direction = node.stringAttr("direction", "");
  if (direction == "LEFT")
    return importBinary<graph::ShiftLeftOp>(node);
  if (direction != "RIGHT")
    return (void)node.fail("direction must be LEFT or RIGHT");
  Value x = node.input(0), amount = node.input(1);
  if (!x || node.elementType(x).isUnsignedInteger())
    return importBinary<graph::ShiftRightOp>(node);
  Value isNegative =
      node.compare(graph::CompareKind::lt, x, node.constantLike(0, x));
  Value inverse = node.create<graph::NotOp>(x);
  Value shifted = node.pointwise<graph::ShiftRightOp>(
      {node.select(isNegative, inverse, x), amount});
  node.setResult(
      0, node.select(isNegative, node.create<graph::NotOp>(shifted), shifted));
}

static void importIsInf(Node &node) {
  Builder &builder = node.getBuilder();
  auto flag = [&](StringRef name, StringRef attribute) {
    bool isDetected = node.intAttr(attribute, 1) != 0;
    return node.attr(name, builder.getBoolAttr(isDetected));
  };
  node.setResult(0, node.create<graph::IsInfOp>(
                        node.input(0), {flag("positive", "detect_positive"),
                                        flag("negative", "detect_negative")}));
}

// --- Activations -------------------------------------------------------------

template <typename OpTy>
static Value createWithAlpha(Node &node, Value x, double alpha) {
  return node.create<OpTy>(x, {node.attr("alpha", alpha)});
}

static void importLeakyRelu(Node &node) {
  node.setResult(0, createWithAlpha<graph::LeakyReluOp>(
                        node, node.input(0), node.floatAttr("alpha", 0.01)));
}

static void importElu(Node &node) {
  node.setResult(0, createWithAlpha<graph::EluOp>(node, node.input(0),
                                                  node.floatAttr("alpha", 1)));
}

static void importSelu(Node &node) {
  double alpha = node.floatAttr("alpha", 1.67326319217681884765625);
  double gamma = node.floatAttr("gamma", 1.05070102214813232421875);
  Value elu = createWithAlpha<graph::EluOp>(node, node.input(0), alpha);
  node.setResult(0, node.mul(elu, node.constantLike(gamma, elu)));
}

/// max(0, x) + min(0, alpha (e^(x / alpha) - 1)) = alpha elu(x / alpha)
static void importCelu(Node &node) {
  Value x = node.input(0);
  Value alpha = node.constantLike(node.floatAttr("alpha", 1), x);
  Value elu = createWithAlpha<graph::EluOp>(node, node.div(x, alpha), 1);
  node.setResult(0, node.mul(elu, alpha));
}

static void importPRelu(Node &node) {
  Value x = node.input(0), slope = node.input(1);
  Value isPositive =
      node.compare(graph::CompareKind::gt, x, node.constantLike(0, x));
  node.setResult(0, node.select(isPositive, x, node.mul(x, slope)));
}

static void importThresholdedRelu(Node &node) {
  Value x = node.input(0);
  Value alpha = node.constantLike(node.floatAttr("alpha", 1), x);
  Value isAbove = node.compare(graph::CompareKind::gt, x, alpha);
  node.setResult(0, node.select(isAbove, x, node.constantLike(0, x)));
}

static void importHardSigmoid(Node &node) {
  node.setResult(
      0, node.create<graph::HardSigmoidOp>(
             node.input(0), {node.attr("alpha", node.floatAttr("alpha", 0.2)),
                             node.attr("beta", node.floatAttr("beta", 0.5))}));
}

static void importGelu(Node &node) {
  std::string form = node.stringAttr("approximate", "none");
  if (form == "tanh")
    return importUnary<graph::GeluTanhOp>(node);
  if (form == "none")
    return importUnary<graph::GeluOp>(node);
  node.fail("approximate must be none or tanh");
}

/// x * sigmoid(alpha x)
static Value emitSwish(Node &node, Value x, double alpha) {
  if (alpha == 1)
    return node.create<graph::SiluOp>(x);
  Value scaled = node.mul(x, node.constantLike(alpha, x));
  return node.mul(x, node.create<graph::SigmoidOp>(scaled));
}

static void importSwish(Node &node) {
  node.setResult(0, emitSwish(node, node.input(0), node.floatAttr("alpha", 1)));
}

static void importSwiGlu(Node &node) {
  Value gate = node.input(0), x = node.input(1);
  if (gate && x && gate.getType() != x.getType())
    return (void)node.fail("inputs of one type are expected");
  node.setResult(
      0, node.mul(emitSwish(node, gate, node.floatAttr("alpha", 1)), x));
}

// --- What onnxruntime fuses --------------------------------------------------

/// x plus the vector or tensor that is input `i`, if it is there.
static Value addInput(Node &node, Value x, int64_t i) {
  return node.hasInput(i) ? node.add(x, node.input(i)) : x;
}

/// gelu(x + bias)
template <typename OpTy> static void importFusedGelu(Node &node) {
  node.setResult(0, node.create<OpTy>(addInput(node, node.input(0), 1)));
}

static void importQuickGelu(Node &node) {
  double alpha = node.floatAttr("alpha", 1.702);
  node.setResult(0, emitSwish(node, node.input(0), alpha));
}

/// x + bias + skip
static void importBiasAdd(Node &node) {
  Value sum = node.add(node.input(0), node.input(1));
  node.setResult(0, node.add(sum, node.input(2)));
}

/// The first half of the features of x + bias times gelu of the second.
static void importBiasSplitGelu(Node &node) {
  Value sum = node.add(node.input(0), node.input(1));
  if (!sum)
    return;
  int64_t axis = node.rank(sum) - 1;
  AffineExpr two = node.getSizes().constant(2);
  Size half = node.getSizes().divideProducts(graph::getExtent(sum, axis), two);
  if (!half)
    return (void)node.fail("the number of features is odd");
  AffineExpr zero = node.getSizes().constant(0);
  Value gate = node.slice(sum, axis, *half, *half);
  node.setResult(0, node.mul(node.slice(sum, axis, zero, *half),
                             node.create<graph::GeluOp>(gate)));
}

static void importSoftsign(Node &node) {
  Value x = node.input(0);
  Value one = node.constantLike(1, x);
  node.setResult(0, node.div(x, node.add(node.create<graph::AbsOp>(x), one)));
}

/// x - bias above lambda, x + bias below -lambda, else 0.
static void importShrink(Node &node) {
  Value x = node.input(0);
  if (!x)
    return;
  double lambda = node.floatAttr("lambd", 0.5),
         bias = node.floatAttr("bias", 0);
  Type type = node.elementType(x);
  // Integers are compared and shifted as floats.
  Value wide = isa<FloatType>(type)
                   ? x
                   : node.cast(x, Float32Type::get(node.getContext()));
  Value shift = node.constantLike(bias, wide);
  Value isBelow = node.compare(graph::CompareKind::lt, wide,
                               node.constantLike(-lambda, wide));
  Value isAbove = node.compare(graph::CompareKind::gt, wide,
                               node.constantLike(lambda, wide));
  Value low =
      node.select(isBelow, node.add(wide, shift), node.constantLike(0, wide));
  Value result = node.select(isAbove, node.sub(wide, shift), low);
  node.setResult(0, node.cast(result, type));
}

// --- Pass-through ------------------------------------------------------------

static void importIdentity(Node &node) {
  if (Tensor *source = node.tensor(0))
    node.setTensor(0, source);
}

using graph::CompareKind;

static constexpr int64_t last = kLastOpset;
static const OpRow rows[] = {
    {"Abs", 1, last, importUnary<graph::AbsOp>},
    {"Acos", 7, last, importUnary<graph::AcosOp>},
    {"Acosh", 9, last, importUnary<graph::AcoshOp>},
    {"Add", 7, last, importArithmetic<graph::AddOp, SizeOp::add>},
    {"And", 7, last, importArithmetic<graph::AndOp, SizeOp::min>},
    {"Asin", 7, last, importUnary<graph::AsinOp>},
    {"Asinh", 9, last, importUnary<graph::AsinhOp>},
    {"Atan", 7, last, importUnary<graph::AtanOp>},
    {"Atanh", 9, last, importUnary<graph::AtanhOp>},
    {"BiasAdd", 1, 1, importBiasAdd, kOrtDomain},
    {"BiasGelu", 1, 1, importFusedGelu<graph::GeluOp>, kOrtDomain},
    {"BiasSplitGelu", 1, 1, importBiasSplitGelu, kOrtDomain},
    {"BitShift", 11, last, importBitShift},
    {"BitwiseAnd", 18, last, importBinary<graph::AndOp>},
    {"BitwiseNot", 18, last, importUnary<graph::NotOp>},
    {"BitwiseOr", 18, last, importBinary<graph::OrOp>},
    {"BitwiseXor", 18, last, importBinary<graph::XorOp>},
    {"Ceil", 1, last, importUnary<graph::CeilOp>},
    {"Celu", 12, last, importCelu},
    {"Clip", 6, last, importClip},
    {"Cos", 7, last, importUnary<graph::CosOp>},
    {"Cosh", 9, last, importUnary<graph::CoshOp>},
    {"Div", 7, last, importArithmetic<graph::DivOp, SizeOp::div>},
    {"Elu", 1, last, importElu},
    {"Equal", 7, last, importCompare<CompareKind::eq, SizeCompare::eq>},
    {"Erf", 9, last, importUnary<graph::ErfOp>},
    {"Exp", 1, last, importUnary<graph::ExpOp>},
    {"FastGelu", 1, 1, importFusedGelu<graph::GeluTanhOp>, kOrtDomain},
    {"Floor", 1, last, importUnary<graph::FloorOp>},
    {"Gelu", 1, 1, importFusedGelu<graph::GeluOp>, kOrtDomain},
    {"Gelu", 20, last, importGelu},
    {"Greater", 7, last, importCompare<CompareKind::gt, SizeCompare::gt>},
    {"GreaterOrEqual", 12, last,
     importCompare<CompareKind::ge, SizeCompare::ge>},
    {"HardSigmoid", 1, last, importHardSigmoid},
    {"HardSwish", 14, last, importUnary<graph::HardSwishOp>},
    {"Identity", 1, last, importIdentity},
    {"IsInf", 10, last, importIsInf},
    {"IsNaN", 9, last, importUnary<graph::IsNanOp>},
    {"LeakyRelu", 1, last, importLeakyRelu},
    {"Less", 7, last, importCompare<CompareKind::lt, SizeCompare::lt>},
    {"LessOrEqual", 12, last, importCompare<CompareKind::le, SizeCompare::le>},
    {"Log", 1, last, importUnary<graph::LogOp>},
    {"Max", 1, last, importVariadic<graph::MaxOp, SizeOp::max>},
    {"Mean", 1, last, importMean},
    {"Min", 1, last, importVariadic<graph::MinOp, SizeOp::min>},
    {"Mish", 18, last, importUnary<graph::MishOp>},
    {"Mod", 10, last, importMod},
    {"Mul", 7, last, importArithmetic<graph::MulOp, SizeOp::mul>},
    {"Neg", 1, last, importUnary<graph::NegOp>},
    {"Not", 1, last, importNot},
    {"Or", 7, last, importArithmetic<graph::OrOp, SizeOp::max>},
    {"PRelu", 7, last, importPRelu},
    {"Pow", 7, last, importPow},
    {"QuickGelu", 1, 1, importQuickGelu, kOrtDomain},
    {"Reciprocal", 1, last, importUnary<graph::ReciprocalOp>},
    {"Relu", 1, last, importUnary<graph::ReluOp>},
    {"Round", 11, last, importUnary<graph::RoundOp>},
    {"Selu", 6, last, importSelu},
    {"Shrink", 9, last, importShrink},
    {"Sigmoid", 1, last, importUnary<graph::SigmoidOp>},
    {"Sign", 9, last, importUnary<graph::SignOp>},
    {"Sin", 7, last, importUnary<graph::SinOp>},
    {"Sinh", 9, last, importUnary<graph::SinhOp>},
    {"Softplus", 1, last, importUnary<graph::SoftplusOp>},
    {"Softsign", 1, last, importSoftsign},
    {"Sqrt", 1, last, importUnary<graph::SqrtOp>},
    {"Sub", 7, last, importArithmetic<graph::SubOp, SizeOp::sub>},
    {"Sum", 1, last, importVariadic<graph::AddOp, SizeOp::add>},
    {"SwiGLU", 28, last, importSwiGlu},
    {"Swish", 24, last, importSwish},
    {"Tan", 7, last, importUnary<graph::TanOp>},
    {"Tanh", 1, last, importUnary<graph::TanhOp>},
    {"ThresholdedRelu", 10, last, importThresholdedRelu},
    {"Where", 9, last, importWhere},
    {"Xor", 7, last, importBinary<graph::XorOp>},
};

ArrayRef<OpRow> getPointwiseOps() { return rows; }

} // namespace tcc::onnx_import
