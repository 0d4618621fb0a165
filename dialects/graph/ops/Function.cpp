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

Value GeluOp::emitScalar(OpBuilder &builder, Location loc,
                         ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  Value scaled = emitter.mul(x, emitter.like(x, 0.70710678118654752440));
  return emitHalfGate(emitter, x, emitter.emit<math::ErfOp>(scaled));
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
