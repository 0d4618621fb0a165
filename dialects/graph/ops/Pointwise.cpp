#include "dialects/graph/ops/Derivatives.h"
#include "dialects/graph/ops/Scalar.h"

#include "mlir/IR/Matchers.h"

#include <limits>

using namespace mlir;
using namespace tcc::graph;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

static bool isFloat(Value x) { return isa<FloatType>(x.getType()); }

/// `FloatOp` or `IntegerOp` on x and y.
template <typename FloatOp, typename IntegerOp>
static Value emitByType(OpBuilder &builder, Location loc, ValueRange elements) {
  if (isFloat(elements[0]))
    return builder.create<FloatOp>(loc, elements[0], elements[1]);
  return builder.create<IntegerOp>(loc, elements[0], elements[1]);
}

template <typename FloatOp, typename SignedOp, typename UnsignedOp>
static Value emitByType(OpBuilder &builder, Location loc, ValueRange elements,
                        bool isUnsigned) {
  if (isUnsigned)
    return emitByType<FloatOp, UnsignedOp>(builder, loc, elements);
  return emitByType<FloatOp, SignedOp>(builder, loc, elements);
}

// --- Folds

/// `attr` is a splat of `value`; -0.0 and 0.0 differ.
static bool isSplatOf(Attribute attr, double value) {
  auto elements = dyn_cast_if_present<DenseElementsAttr>(attr);
  if (!elements || !elements.isSplat())
    return false;
  Type type = elements.getElementType();
  if (isa<FloatType>(type))
    return elements.getSplatValue<APFloat>().bitwiseIsEqual(
        cast<FloatAttr>(FloatAttr::get(type, value)).getValue());
  return isa<IntegerType>(type) &&
         elements.getSplatValue<APInt>() ==
             APInt(type.getIntOrFloatBitWidth(), uint64_t(int64_t(value)));
}

OpFoldResult AddOp::fold(FoldAdaptor adaptor) {
  // x + 0.0 is not x: it turns -0.0 into 0.0.
  if (isSplatOf(adaptor.getRhs(), -0.0))
    return getLhs();
  return {};
}

OpFoldResult SubOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 0.0))
    return getLhs();
  return {};
}

OpFoldResult MulOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1.0))
    return getLhs();
  return {};
}

OpFoldResult DivOp::fold(FoldAdaptor adaptor) {
  if (isSplatOf(adaptor.getRhs(), 1.0))
    return getLhs();
  return {};
}

OpFoldResult SelectOp::fold(FoldAdaptor adaptor) {
  if (getOnTrue() == getOnFalse())
    return getOnTrue();
  if (isSplatOf(adaptor.getCondition(), 1))
    return getOnTrue();
  if (isSplatOf(adaptor.getCondition(), 0))
    return getOnFalse();
  return {};
}

OpFoldResult CastOp::fold(FoldAdaptor) {
  return getX().getType() == getType() ? getX() : Value();
}

// --- Arithmetic

Value AddOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return emitByType<arith::AddFOp, arith::AddIOp>(builder, loc, elements);
}

Value SubOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return emitByType<arith::SubFOp, arith::SubIOp>(builder, loc, elements);
}

Value MulOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return emitByType<arith::MulFOp, arith::MulIOp>(builder, loc, elements);
}

/// Divisors on which division would trap (0, and -1 for signed integers)
/// become 1.
static Value emitSafeDivisor(const ScalarEmitter &emitter, Value divisor,
                             bool isUnsigned) {
  Value isUnsafe =
      emitter.compare(CmpIPredicate::eq, divisor, emitter.like(divisor, 0));
  if (!isUnsigned)
    isUnsafe = emitter.emit<arith::OrIOp>(
        isUnsafe,
        emitter.compare(CmpIPredicate::eq, divisor, emitter.like(divisor, -1)));
  return emitter.select(isUnsafe, emitter.like(divisor, 1), divisor);
}

Value DivOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value lhs = elements[0], rhs = elements[1];
  if (isFloat(lhs))
    return emitter.div(lhs, rhs);
  bool isUnsigned = isUnsignedElement(getLhs());
  Value divisor = emitSafeDivisor(emitter, rhs, isUnsigned);
  Value zero = emitter.like(lhs, 0);
  Value isZero = emitter.compare(CmpIPredicate::eq, rhs, zero);
  if (isUnsigned)
    return emitter.select(isZero, zero,
                          emitter.emit<arith::DivUIOp>(lhs, divisor));
  Value isMinusOne =
      emitter.compare(CmpIPredicate::eq, rhs, emitter.like(rhs, -1));
  Value quotient =
      emitter.select(isMinusOne, emitter.emit<arith::SubIOp>(zero, lhs),
                     emitter.emit<arith::DivSIOp>(lhs, divisor));
  return emitter.select(isZero, zero, quotient);
}

Value MaxOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return emitByType<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(
      builder, loc, elements, isUnsignedElement(getLhs()));
}

Value MinOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return emitByType<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(
      builder, loc, elements, isUnsignedElement(getLhs()));
}

Value PowOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Type baseType = getElementTypeOrSelf(getLhs());
  Type exponentType = getElementTypeOrSelf(getRhs());
  Value base = elements[0], exponent = elements[1];
  if (isFloat(base))
    return emitter.emit<math::PowFOp>(
        base, emitCast(builder, loc, exponent, exponentType, baseType));
  if (!isFloat(exponent))
    return emitter.emit<math::IPowIOp>(
        base, emitCast(builder, loc, exponent, exponentType, baseType));
  Type f64 = builder.getF64Type();
  Value power = emitter.emit<math::PowFOp>(
      emitCast(builder, loc, base, baseType, f64),
      emitCast(builder, loc, exponent, exponentType, f64));
  return emitCast(builder, loc, power, f64, baseType);
}

/// The remainder with the sign of lhs; 0 where rhs is an integer 0.
static Value emitRemainder(const ScalarEmitter &emitter, Value lhs, Value rhs,
                           bool isUnsigned) {
  if (isFloat(lhs))
    return emitter.emit<arith::RemFOp>(lhs, rhs);
  // x rem 1 = 0 is also the answer for 0 and -1.
  Value divisor = emitSafeDivisor(emitter, rhs, isUnsigned);
  return isUnsigned ? emitter.emit<arith::RemUIOp>(lhs, divisor)
                    : emitter.emit<arith::RemSIOp>(lhs, divisor);
}

Value RemOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return emitRemainder(ScalarEmitter(builder, loc), elements[0], elements[1],
                       isUnsignedElement(getLhs()));
}

Value ModOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value rhs = elements[1];
  bool isUnsigned = isUnsignedElement(getLhs());
  Value remainder = emitRemainder(emitter, elements[0], rhs, isUnsigned);
  if (isUnsigned)
    return remainder;
  Value zero = emitter.like(rhs, 0);
  auto isNegative = [&](Value x) {
    return isFloat(x) ? emitter.less(x, zero)
                      : emitter.compare(CmpIPredicate::slt, x, zero);
  };
  Value isNonZero =
      isFloat(rhs)
          ? emitter.emit<arith::CmpFOp>(CmpFPredicate::ONE, remainder, zero)
          : emitter.compare(CmpIPredicate::ne, remainder, zero);
  Value signsDiffer =
      emitter.emit<arith::XOrIOp>(isNegative(remainder), isNegative(rhs));
  Value shifted =
      emitByType<arith::AddFOp, arith::AddIOp>(builder, loc, {remainder, rhs});
  // A zero, too, has the sign of rhs.
  if (isFloat(rhs))
    remainder = emitter.select(isNonZero, remainder,
                               emitter.emit<math::CopySignOp>(remainder, rhs));
  return emitter.select(emitter.emit<arith::AndIOp>(isNonZero, signsDiffer),
                        shifted, remainder);
}

Value NegOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  if (isFloat(x))
    return emitter.emit<arith::NegFOp>(x);
  return emitter.emit<arith::SubIOp>(emitter.like(x, 0), x);
}

Value AbsOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  if (isFloat(x))
    return emitter.emit<math::AbsFOp>(x);
  if (isUnsignedElement(getX()))
    return x;
  Value zero = emitter.like(x, 0);
  return emitter.select(emitter.compare(CmpIPredicate::slt, x, zero),
                        emitter.emit<arith::SubIOp>(zero, x), x);
}

Value SignOp::emitScalar(OpBuilder &builder, Location loc,
                         ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0];
  Value zero = emitter.like(x, 0), one = emitter.like(x, 1);
  if (isFloat(x)) {
    // 0 and NaN are their own signs.
    Value negative =
        emitter.select(emitter.less(x, zero), emitter.like(x, -1), x);
    return emitter.select(emitter.less(zero, x), one, negative);
  }
  if (isUnsignedElement(getX()))
    return emitter.select(emitter.compare(CmpIPredicate::eq, x, zero), zero,
                          one);
  Value negative = emitter.select(emitter.compare(CmpIPredicate::slt, x, zero),
                                  emitter.like(x, -1), zero);
  return emitter.select(emitter.compare(CmpIPredicate::sgt, x, zero), one,
                        negative);
}

Value ReluOp::emitScalar(OpBuilder &builder, Location loc,
                         ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0], zero = emitter.like(x, 0);
  // NaN < 0 is false: NaN stays.
  if (isFloat(x))
    return emitter.select(emitter.less(x, zero), zero, x);
  if (isUnsignedElement(getX()))
    return x;
  return emitter.emit<arith::MaxSIOp>(x, zero);
}

// --- Bits and booleans

Value AndOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return builder.create<arith::AndIOp>(loc, elements[0], elements[1]);
}

Value OrOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return builder.create<arith::OrIOp>(loc, elements[0], elements[1]);
}

Value XorOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  return builder.create<arith::XOrIOp>(loc, elements[0], elements[1]);
}

Value NotOp::emitScalar(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Type type = elements[0].getType();
  Value ones =
      emitter.integer(type, APInt::getAllOnes(type.getIntOrFloatBitWidth()));
  return emitter.emit<arith::XOrIOp>(elements[0], ones);
}

template <typename ShiftOp>
static Value emitShift(OpBuilder &builder, Location loc, ValueRange elements) {
  ScalarEmitter emitter(builder, loc);
  Value x = elements[0], amount = elements[1];
  Value zero = emitter.like(x, 0);
  Value width =
      emitter.integer(x.getType(), APInt(x.getType().getIntOrFloatBitWidth(),
                                         x.getType().getIntOrFloatBitWidth()));
  Value isInside = emitter.compare(CmpIPredicate::ult, amount, width);
  Value shifted =
      emitter.emit<ShiftOp>(x, emitter.select(isInside, amount, zero));
  return emitter.select(isInside, shifted, zero);
}

Value ShiftLeftOp::emitScalar(OpBuilder &builder, Location loc,
                              ValueRange elements) {
  return emitShift<arith::ShLIOp>(builder, loc, elements);
}

Value ShiftRightOp::emitScalar(OpBuilder &builder, Location loc,
                               ValueRange elements) {
  return emitShift<arith::ShRUIOp>(builder, loc, elements);
}

// --- Comparison and choice

/// `type` as booleans.
static Type getBooleanType(Type type) {
  return withElementType(cast<RankedTensorType>(type),
                         IntegerType::get(type.getContext(), 1));
}

LogicalResult CompareOp::inferReturnTypes(MLIRContext *,
                                          std::optional<Location>,
                                          Adaptor adaptor,
                                          SmallVectorImpl<Type> &types) {
  types.push_back(getBooleanType(adaptor.getLhs().getType()));
  return success();
}

static CmpFPredicate getFloatPredicate(CompareKind kind) {
  switch (kind) {
  case CompareKind::eq:
    return CmpFPredicate::OEQ;
  case CompareKind::ne:
    return CmpFPredicate::UNE;
  case CompareKind::lt:
    return CmpFPredicate::OLT;
  case CompareKind::le:
    return CmpFPredicate::OLE;
  case CompareKind::gt:
    return CmpFPredicate::OGT;
  case CompareKind::ge:
    return CmpFPredicate::OGE;
  }
  llvm_unreachable("covered switch");
}

static CmpIPredicate getIntegerPredicate(CompareKind kind, bool isUnsigned) {
  switch (kind) {
  case CompareKind::eq:
    return CmpIPredicate::eq;
  case CompareKind::ne:
    return CmpIPredicate::ne;
  case CompareKind::lt:
    return isUnsigned ? CmpIPredicate::ult : CmpIPredicate::slt;
  case CompareKind::le:
    return isUnsigned ? CmpIPredicate::ule : CmpIPredicate::sle;
  case CompareKind::gt:
    return isUnsigned ? CmpIPredicate::ugt : CmpIPredicate::sgt;
  case CompareKind::ge:
    return isUnsigned ? CmpIPredicate::uge : CmpIPredicate::sge;
  }
  llvm_unreachable("covered switch");
}

Value CompareOp::emitScalar(OpBuilder &builder, Location loc,
                            ValueRange elements) {
  if (isFloat(elements[0]))
    return builder.create<arith::CmpFOp>(loc, getFloatPredicate(getKind()),
                                         elements[0], elements[1]);
  return builder.create<arith::CmpIOp>(
      loc, getIntegerPredicate(getKind(), isUnsignedElement(getLhs())),
      elements[0], elements[1]);
}

LogicalResult SelectOp::inferReturnTypes(MLIRContext *, std::optional<Location>,
                                         Adaptor adaptor,
                                         SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getOnTrue().getType());
  return success();
}

Value SelectOp::emitScalar(OpBuilder &builder, Location loc,
                           ValueRange elements) {
  return builder.create<arith::SelectOp>(loc, elements[0], elements[1],
                                         elements[2]);
}

void CastOp::build(OpBuilder &builder, OperationState &state, Value x,
                   Type elementType) {
  build(builder, state,
        withElementType(cast<RankedTensorType>(x.getType()), elementType), x);
}

LogicalResult CastOp::verify() {
  auto type = withElementType(getX().getType(), getType().getElementType());
  if (type == getType())
    return success();
  return emitOpError("expected result type ") << type;
}

Value CastOp::emitScalar(OpBuilder &builder, Location loc,
                         ValueRange elements) {
  return emitCast(builder, loc, elements[0], getElementTypeOrSelf(getX()),
                  getElementTypeOrSelf(getResult()));
}

LogicalResult BitcastOp::verify() {
  auto type = withElementType(getX().getType(), getType().getElementType());
  if (type != getType())
    return emitOpError("expected result type ") << type;
  for (Type element : {getElementTypeOrSelf(getX()), type.getElementType()})
    if (element.isInteger(1) ||
        !(isa<IntegerType>(element) || element.isF32() || element.isF64()))
      return emitOpError("expected integers, f32 or f64, found ") << element;
  if (getX().getType().getElementTypeBitWidth() !=
      type.getElementTypeBitWidth())
    return emitOpError("expected elements of one width");
  return success();
}

Value BitcastOp::emitScalar(OpBuilder &builder, Location loc,
                            ValueRange elements) {
  Type scalar = getScalarType(getType().getElementType());
  if (elements[0].getType() == scalar)
    return elements[0];
  return builder.create<arith::BitcastOp>(loc, scalar, elements[0]);
}

#define GET_OP_CLASSES
#include "dialects/graph/Pointwise.cpp.inc"

void GraphDialect::addPointwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "dialects/graph/Pointwise.cpp.inc"
      >();
}
