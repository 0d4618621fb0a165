//===- Function.cpp - Pointwise functions of floats -----------------------===//

#include "dialects/graph/GraphOps.h"
#include "dialects/graph/ops/Scalar.h"

#include <limits>

using namespace mlir;
using namespace tcc::graph;
using arith::CmpFPredicate;

// --- Classification

static void inferBoolean(Value x, SmallVectorImpl<Type> &types) {
  types.push_back(withElementType(cast<RankedTensorType>(x.getType()),
                                  IntegerType::get(x.getContext(), 1)));
}

LogicalResult IsNanOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  inferBoolean(adaptor.getX(), types);
  return success();
}

Value IsNanOp::emitScalar(OpBuilder &builder, Location loc,
                          ValueRange elements) {
  return builder.create<arith::CmpFOp>(loc, CmpFPredicate::UNO, elements[0],
                                       elements[0]);
}

LogicalResult IsInfOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                        Adaptor adaptor,
                                        SmallVectorImpl<Type> &types) {
  inferBoolean(adaptor.getX(), types);
  return success();
}

Value IsInfOp::emitScalar(OpBuilder &builder, Location loc,
                          ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  double infinity = std::numeric_limits<double>::infinity();
  Value result = emitter.constant(builder.getI1Type(), 0);
  auto test = [&](double value) {
    Value isEqual = emitter.emit<arith::CmpFOp>(CmpFPredicate::OEQ, x,
                                                emitter.like(x, value));
    result = emitter.emit<arith::OrIOp>(result, isEqual);
  };
  if (getPositive())
    test(infinity);
  if (getNegative())
    test(-infinity);
  return result;
}

// --- Elementary functions

Value RsqrtOp::emitScalar(OpBuilder &builder, Location loc,
                          ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  return emitter.div(emitter.like(elements[0], 1),
                     emitter.emit<math::SqrtOp>(elements[0]));
}

Value ReciprocalOp::emitScalar(OpBuilder &builder, Location loc,
                               ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  return emitter.div(emitter.like(elements[0], 1), elements[0]);
}

// --- Activations

/// 1 + e^-x
static Value emitLogisticDenominator(const ScalarEmitter &emitter, Value x) {
  Value negated = emitter.emit<arith::NegFOp>(x);
  return emitter.add(emitter.like(x, 1), emitter.emit<math::ExpOp>(negated));
}

Value SigmoidOp::emitScalar(OpBuilder &builder, Location loc,
                            ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  return emitter.div(emitter.like(elements[0], 1),
                     emitLogisticDenominator(emitter, elements[0]));
}

Value SiluOp::emitScalar(OpBuilder &builder, Location loc,
                         ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  return emitter.div(elements[0],
                     emitLogisticDenominator(emitter, elements[0]));
}

Value SoftplusOp::emitScalar(OpBuilder &builder, Location loc,
                             ValueRange elements) {
  // max(x, 0) + log1p(e^-|x|) keeps exp from overflowing.
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0], zero = emitter.like(x, 0);
  Value magnitude = emitter.emit<math::AbsFOp>(x);
  Value decay =
      emitter.emit<math::ExpOp>(emitter.emit<arith::NegFOp>(magnitude));
  Value positive = emitter.select(emitter.less(x, zero), zero, x);
  return emitter.add(positive, emitter.emit<math::Log1pOp>(decay));
}

/// x/2 (1 + y)
static Value emitHalfGate(const ScalarEmitter &emitter, Value x, Value y) {
  Value half = emitter.mul(x, emitter.like(x, 0.5));
  return emitter.mul(half, emitter.add(emitter.like(x, 1), y));
}

/// The polynomial of `x` with `coefficients`, that of the highest power last.
static Value emitPolynomial(const ScalarEmitter &emitter, Value x,
                            ArrayRef<double> coefficients) {
  Value sum = emitter.like(x, coefficients.back());
  for (double c : llvm::reverse(coefficients.drop_back()))
    sum = emitter.emit<math::FmaOp>(sum, x, emitter.like(x, c));
  return sum;
}

/// 2^-x of an f32 in [0, 126].
static Value emitPowerOfHalf(const ScalarEmitter &emitter, Value x) {
  // 2^-r, |r| <= 0.5, off by 2e-9: least squares, weighted until all maxima of
  // the error were alike (C. Lawson's algorithm), as for kDecay.
  static constexpr double kPower[] = {1.0,
                                      -6.931471825e-1,
                                      2.402264625e-1,
                                      -5.550328642e-2,
                                      9.618489072e-3,
                                      -1.339993090e-3,
                                      1.534581097e-4};
  constexpr int64_t kBias = 127, kMantissaBits = 23;
  Value whole = emitter.emit<math::RoundEvenOp>(x);
  Value rest = emitter.sub(x, whole);
  // NaN stays in the rest; as an integer it would be poison.
  Value isNan = emitter.emit<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  whole = emitter.select(isNan, emitter.like(x, 0), whole);
  Type i32 = IntegerType::get(x.getContext(), 32);
  Value exponent = emitter.emit<arith::SubIOp>(
      emitter.constant(i32, kBias), emitter.emit<arith::FPToSIOp>(i32, whole));
  Value bits = emitter.emit<arith::ShLIOp>(
      exponent, emitter.constant(i32, kMantissaBits));
  Value power = emitter.emit<arith::BitcastOp>(x.getType(), bits);
  return emitter.mul(emitPolynomial(emitter, rest, kPower), power);
}

/// Where the part of a normal distribution above an f32 is as good as zero.
static constexpr double kNormalEnd = 10;

/// The part of a normal distribution above `x`, an f32 in [0, kNormalEnd]: 5e-8
/// off at most, and 1.3e-6 of itself below 3.
static Value emitNormalTail(const ScalarEmitter &emitter, Value x) {
  // -log2 of it in [0, 5.7], off by 2e-8 / tail at most, and by 1e-6 below 3.
  static constexpr double kDecay[] = {
      9.999999404e-1,  1.151106715e0,  4.591967165e-1, 5.252721906e-2,
      -7.096661255e-3, 1.447273971e-4, 1.971451857e-4, -4.811501276e-5,
      5.223222161e-6,  -2.281712881e-7};
  return emitPowerOfHalf(emitter, emitPolynomial(emitter, x, kDecay));
}

/// |x|, at most kNormalEnd. NaN stays.
static Value emitNormalMagnitude(const ScalarEmitter &emitter, Value x) {
  Value magnitude = emitter.emit<math::AbsFOp>(x);
  Value end = emitter.like(x, kNormalEnd);
  return emitter.select(emitter.less(end, magnitude), end, magnitude);
}

/// (1 + erf(x / sqrt 2)) / 2
static Value emitNormalCdf64(const ScalarEmitter &emitter, Value x) {
  Value scaled = emitter.mul(x, emitter.like(x, 0.70710678118654752440));
  Value sum =
      emitter.add(emitter.like(x, 1), emitter.emit<math::ErfOp>(scaled));
  return emitter.mul(emitter.like(x, 0.5), sum);
}

Value NormalCdfOp::emitScalar(OpBuilder &builder, Location loc,
                              ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  if (!x.getType().isF32())
    return emitNormalCdf64(emitter, x);
  Value tail = emitNormalTail(emitter, emitNormalMagnitude(emitter, x));
  return emitter.select(emitter.less(x, emitter.like(x, 0)), tail,
                        emitter.sub(emitter.like(x, 1), tail));
}

Value GeluOp::emitScalar(OpBuilder &builder, Location loc,
                         ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  if (!x.getType().isF32())
    return emitter.mul(x, emitNormalCdf64(emitter, x));
  // max(x, 0) - |x| tail(|x|)
  Value magnitude = emitNormalMagnitude(emitter, x);
  Value tail = emitNormalTail(emitter, magnitude), zero = emitter.like(x, 0);
  Value positive = emitter.select(emitter.less(x, zero), zero, x);
  return emitter.emit<math::FmaOp>(emitter.emit<arith::NegFOp>(magnitude), tail,
                                   positive);
}

static constexpr double kGeluCubic = 0.044715;
static constexpr double kGeluScale = 0.79788456080286535588; // sqrt(2/pi)

/// tanh(sqrt(2/pi) (x + 0.044715 x^3)) of x and x^2
static Value emitGeluGate(const ScalarEmitter &emitter, Value x, Value square) {
  Value slope = emitter.emit<math::FmaOp>(square, emitter.like(x, kGeluCubic),
                                          emitter.like(x, 1));
  Value scaled = emitter.mul(x, emitter.like(x, kGeluScale));
  return emitter.emit<math::TanhOp>(emitter.mul(scaled, slope));
}

Value GeluTanhOp::emitScalar(OpBuilder &builder, Location loc,
                             ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  return emitHalfGate(emitter, x, emitGeluGate(emitter, x, emitter.mul(x, x)));
}

Value GeluTanhGradientOp::emitScalar(OpBuilder &builder, Location loc,
                                     ValueRange elements) {
  // With y the tanh and u what it is of: dy ((1 + y)/2 + x/2 (1 - y^2) u').
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0], one = emitter.like(x, 1), half = emitter.like(x, 0.5);
  Value square = emitter.mul(x, x);
  Value y = emitGeluGate(emitter, x, square);
  Value inner = emitter.emit<math::FmaOp>(
      square, emitter.like(x, 3 * kGeluCubic * kGeluScale),
      emitter.like(x, kGeluScale));
  Value bend = emitter.sub(one, emitter.mul(y, y));
  Value slope = emitter.mul(emitter.mul(emitter.mul(half, x), bend), inner);
  Value gate = emitter.mul(half, emitter.add(one, y));
  return emitter.mul(elements[1], emitter.add(gate, slope));
}

Value MishOp::emitScalar(OpBuilder &builder, Location loc,
                         ValueRange elements) {
  // tanh(log y) = (y^2 - 1) / (y^2 + 1). With t = e^-|x|, which cannot
  // overflow, both sides divided by e^2x where x is positive.
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0], one = emitter.like(x, 1), two = emitter.like(x, 2);
  Value magnitude = emitter.emit<math::AbsFOp>(x);
  Value t = emitter.emit<math::ExpOp>(emitter.emit<arith::NegFOp>(magnitude));
  Value below = emitter.mul(t, emitter.add(t, two));    // t^2 + 2t
  Value above = emitter.emit<math::FmaOp>(two, t, one); // 1 + 2t
  Value isNegative = emitter.less(x, emitter.like(x, 0));
  Value numerator = emitter.select(isNegative, below, above);
  Value square = emitter.mul(two, emitter.mul(t, t));
  Value rest = emitter.select(isNegative, two, square);
  Value gate = emitter.div(numerator, emitter.add(numerator, rest));
  return emitter.mul(x, gate);
}

/// max(0, min(1, x)); NaN stays.
static Value emitUnitClamp(const ScalarEmitter &emitter, Value x) {
  Value zero = emitter.like(x, 0), one = emitter.like(x, 1);
  Value above = emitter.select(emitter.less(x, zero), zero, x);
  return emitter.select(emitter.less(one, x), one, above);
}

Value HardSwishOp::emitScalar(OpBuilder &builder, Location loc,
                              ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  Value gate = emitter.emit<math::FmaOp>(x, emitter.like(x, 1.0 / 6.0),
                                         emitter.like(x, 0.5));
  return emitter.mul(x, emitUnitClamp(emitter, gate));
}

Value HardSigmoidOp::emitScalar(OpBuilder &builder, Location loc,
                                ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  Value line = emitter.emit<math::FmaOp>(
      x, emitter.like(x, getAlpha().convertToDouble()),
      emitter.like(x, getBeta().convertToDouble()));
  return emitUnitClamp(emitter, line);
}

Value LeakyReluOp::emitScalar(OpBuilder &builder, Location loc,
                              ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  Value scaled = emitter.mul(x, emitter.like(x, getAlpha().convertToDouble()));
  return emitter.select(emitter.less(x, emitter.like(x, 0)), scaled, x);
}

Value EluOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  Value decay = emitter.mul(emitter.emit<math::ExpM1Op>(x),
                            emitter.like(x, getAlpha().convertToDouble()));
  return emitter.select(emitter.less(x, emitter.like(x, 0)), decay, x);
}
