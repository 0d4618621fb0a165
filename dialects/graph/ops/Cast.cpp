//===- Cast.cpp - Conversions between element types, and branches ---------===//

#include "dialects/graph/ops/Scalar.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

#include <cmath>

using namespace mlir;
using namespace tcc::graph;

static bool isUnsignedType(Type type) {
  return type.isUnsignedInteger() || type.isInteger(1);
}

/// Truncates; saturates; NaN gives 0.
static Value emitFloatToInteger(const ScalarEmitter &emitter, Value x,
                                Type to) {
  unsigned width = to.getIntOrFloatBitWidth();
  bool isUnsigned = isUnsignedType(to);
  Type scalar = getScalarType(to);
  // Both limits are powers of two, exact in any float type. NaN fails both.
  Value low = emitter.like(x, isUnsigned ? -1.0 : -std::ldexp(1.0, width - 1));
  Value high = emitter.like(x, std::ldexp(1.0, isUnsigned ? width : width - 1));
  Value isAbove =
      emitter.emit<arith::CmpFOp>(arith::CmpFPredicate::OGE, x, high);
  Value isBelow =
      emitter.emit<arith::CmpFOp>(arith::CmpFPredicate::OLE, x, low);
  Value isNan = emitter.emit<arith::CmpFOp>(arith::CmpFPredicate::UNO, x, x);
  Value isOutside = emitter.emit<arith::OrIOp>(
      emitter.emit<arith::OrIOp>(isAbove, isBelow), isNan);
  Value inside = emitter.select(isOutside, emitter.like(x, 0), x);
  Value converted = isUnsigned ? emitter.emit<arith::FPToUIOp>(scalar, inside)
                               : emitter.emit<arith::FPToSIOp>(scalar, inside);
  APInt max =
      isUnsigned ? APInt::getMaxValue(width) : APInt::getSignedMaxValue(width);
  APInt min =
      isUnsigned ? APInt::getMinValue(width) : APInt::getSignedMinValue(width);
  Value clamped =
      emitter.select(isAbove, emitter.integer(scalar, max), converted);
  return emitter.select(isBelow, emitter.integer(scalar, min), clamped);
}

static Value emitToBoolean(const ScalarEmitter &emitter, Value x) {
  Value zero = emitter.like(x, 0);
  if (isa<FloatType>(x.getType()))
    return emitter.emit<arith::CmpFOp>(arith::CmpFPredicate::UNE, x, zero);
  return emitter.compare(arith::CmpIPredicate::ne, x, zero);
}

/// f64 to f32 so that rounding to f16 or bf16 afterwards rounds only once: an
/// inexact result gets an odd mantissa, which no later tie can hide.
static Value emitRoundToOdd(const ScalarEmitter &emitter, Value x, Type f32) {
  Type i32 = IntegerType::get(x.getContext(), 32);
  Value rounded = emitter.emit<arith::TruncFOp>(f32, x);
  Value back = emitter.emit<arith::ExtFOp>(x.getType(), rounded);
  Value bits = emitter.emit<arith::BitcastOp>(i32, rounded);
  Value one = emitter.constant(i32, 1);
  Value magnitude = emitter.emit<math::AbsFOp>(x);
  Value isTooLarge = emitter.less(magnitude, emitter.emit<math::AbsFOp>(back));
  Value isInexact =
      emitter.emit<arith::CmpFOp>(arith::CmpFPredicate::ONE, x, back);
  Value towardsZero =
      emitter.select(isTooLarge, emitter.emit<arith::SubIOp>(bits, one), bits);
  Value odd = emitter.emit<arith::OrIOp>(towardsZero, one);
  return emitter.emit<arith::BitcastOp>(f32,
                                        emitter.select(isInexact, odd, bits));
}

static Value emitFloatToFloat(const ScalarEmitter &emitter, Value x, Type to) {
  Type scalar = getScalarType(to);
  if (x.getType() == scalar)
    return x;
  if (scalar.isF64())
    return emitter.emit<arith::ExtFOp>(scalar, x);
  if (to.isF32())
    return emitter.emit<arith::TruncFOp>(scalar, x);
  return emitRoundToOdd(emitter, x, scalar);
}

static Value emitIntegerToFloat(const ScalarEmitter &emitter, Value x,
                                bool isUnsigned, Type to) {
  Type scalar = getScalarType(to);
  if (isUnsigned)
    return emitter.emit<arith::UIToFPOp>(scalar, x);
  return emitter.emit<arith::SIToFPOp>(scalar, x);
}

Value tcc::graph::emitCast(OpBuilder &builder, Location loc, Value x, Type from,
                           Type to) {
  ScalarEmitter emitter(builder, loc);
  if (from == to)
    return x;
  if (to.isInteger(1))
    return emitToBoolean(emitter, x);
  if (isa<FloatType>(from))
    return isa<FloatType>(to) ? emitFloatToFloat(emitter, x, to)
                              : emitFloatToInteger(emitter, x, to);
  if (isa<FloatType>(to))
    return emitIntegerToFloat(emitter, x, isUnsignedType(from), to);
  Type scalar = getScalarType(to);
  unsigned width = scalar.getIntOrFloatBitWidth();
  if (width < from.getIntOrFloatBitWidth())
    return emitter.emit<arith::TruncIOp>(scalar, x);
  if (width == from.getIntOrFloatBitWidth())
    return x;
  return isUnsignedType(from) ? emitter.emit<arith::ExtUIOp>(scalar, x)
                              : emitter.emit<arith::ExtSIOp>(scalar, x);
}

Value tcc::graph::emitBranch(OpBuilder &builder, Location loc, Type scalar,
                             Value condition, ScalarBody then,
                             ScalarBody otherwise) {
  auto branch = builder.create<scf::IfOp>(loc, scalar, condition,
                                          /*withElseRegion=*/true);
  OpBuilder thenBuilder = branch.getThenBodyBuilder();
  thenBuilder.create<scf::YieldOp>(loc, then(thenBuilder));
  OpBuilder elseBuilder = branch.getElseBodyBuilder();
  elseBuilder.create<scf::YieldOp>(loc, otherwise(elseBuilder));
  return branch.getResult(0);
}
