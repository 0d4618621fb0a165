#include "frontends/aten/Call.h"
#include "frontends/aten/Tracer.h"

#include <limits>

using namespace mlir;
using tcc::graph::CompareKind;

namespace tcc::aten {

using Kind = Item::Kind;

// --- Arithmetic --------------------------------------------------------------

template <typename OpTy> static void importUnary(Call &call) {
  call.give(call.create<OpTy>(call.tensor("self")));
}

/// A function of floats.
template <typename OpTy> static void importReal(Call &call) {
  call.give(call.create<OpTy>(call.toReal(call.tensor("self"))));
}

template <typename OpTy> static void importBinary(Call &call) {
  call.give(call.pointwise<OpTy>(call.operands({"self", "other"})));
}

/// The number of a call's arguments, where it is not `neutral`.
static Value scaleBy(Call &call, Value x, StringRef name) {
  const Item &factor = call.get(name);
  if (!x || getNumber(factor) == 1.0)
    return x;
  return call.mul(x, call.operand(factor, call.elementType(x)));
}

template <bool isReversed> static void importSub(Call &call) {
  auto values = call.operands({"self", "other"});
  if (isReversed)
    std::swap(values[0], values[1]);
  call.give(call.sub(values[0], scaleBy(call, values[1], "alpha")));
}

static void importAdd(Call &call) {
  auto values = call.operands({"self", "other"});
  if (values[0] && call.elementType(values[0]).isInteger(1))
    return call.give(call.pointwise<graph::OrOp>(values));
  call.give(call.add(values[0], scaleBy(call, values[1], "alpha")));
}

static void importMul(Call &call) {
  auto values = call.operands({"self", "other"});
  if (values[0] && call.elementType(values[0]).isInteger(1))
    return call.give(call.pointwise<graph::AndOp>(values));
  call.give(call.pointwise<graph::MulOp>(values));
}

static void importDiv(Call &call) {
  auto values = call.operands({"self", "other"}, true);
  call.give(call.div(values[0], values[1]));
}

/// The floor of the quotient as it is without rounding: a / b may round up to
/// the next integer, a less its remainder does not.
static Value divideFloorReals(Call &call, Value a, Value b) {
  Value zero = call.constantLike(0, a), one = call.constantLike(1, a);
  Value rest = call.pointwise<graph::RemOp>({a, b});
  Value quotient = call.div(call.sub(a, rest), b);
  Value differ =
      call.pointwise<graph::XorOp>({call.compare(CompareKind::lt, rest, zero),
                                    call.compare(CompareKind::lt, b, zero)});
  Value hasRest = call.compare(CompareKind::ne, rest, zero);
  quotient = call.select(call.pointwise<graph::AndOp>({hasRest, differ}),
                         call.sub(quotient, one), quotient);
  // It is an integer but for rounding.
  Value floor = call.create<graph::FloorOp>(quotient);
  Value isBelow = call.compare(CompareKind::gt, call.sub(quotient, floor),
                               call.constantLike(0.5, a));
  floor = call.select(isBelow, call.add(floor, one), floor);
  return call.select(call.compare(CompareKind::eq, b, zero), call.div(a, b),
                     floor);
}

/// Rounded towards minus infinity: (a - a mod b) / b is exact.
static Value divideFloor(Call &call, Value a, Value b) {
  if (!a || !b)
    return nullptr;
  if (isa<FloatType>(call.elementType(a)))
    return divideFloorReals(call, a, b);
  return call.div(call.sub(a, call.pointwise<graph::ModOp>({a, b})), b);
}

static Value truncate(Call &call, Value x) {
  if (!x || !isa<FloatType>(call.elementType(x)))
    return x;
  Value isNegative = call.compare(CompareKind::lt, x, call.constantLike(0, x));
  return call.select(isNegative, call.create<graph::CeilOp>(x),
                     call.create<graph::FloorOp>(x));
}

static void importDivMode(Call &call) {
  if (!call.has("rounding_mode"))
    return importDiv(call);
  auto values = call.operands({"self", "other"});
  std::string mode = call.text("rounding_mode");
  if (mode == "floor")
    return call.give(divideFloor(call, values[0], values[1]));
  if (mode != "trunc")
    return (void)call.fail("rounding_mode must be 'floor' or 'trunc'");
  call.give(truncate(call, call.div(values[0], values[1])));
}

static void importFloorDivide(Call &call) {
  auto values = call.operands({"self", "other"});
  call.give(divideFloor(call, values[0], values[1]));
}

static void importTrunc(Call &call) {
  call.give(truncate(call, call.tensor("self")));
}

static void importPow(Call &call) {
  auto values = call.operands({"self", "exponent"});
  call.give(call.pointwise<graph::PowOp>(values));
}

static void importSquare(Call &call) {
  Value x = call.tensor("self");
  call.give(call.mul(x, x));
}

/// self + value * tensor1 (op) tensor2
template <typename OpTy> static void importAddc(Call &call) {
  Value part = call.pointwise<OpTy>(call.operands({"tensor1", "tensor2"}));
  call.give(call.add(call.tensor("self"), scaleBy(call, part, "value")));
}

static void importLog2(Call &call) {
  Value x = call.toReal(call.tensor("self"));
  constexpr double kPerBit = 1.4426950408889634;
  call.give(
      call.mul(call.create<graph::LogOp>(x), call.constantLike(kPerBit, x)));
}

/// e^x - 1 as tanh(x / 2) (e^x + 1), which keeps small x.
static void importExpm1(Call &call) {
  Value x = call.toReal(call.tensor("self"));
  Value half = call.mul(x, call.constantLike(0.5, x));
  Value sum = call.add(call.create<graph::ExpOp>(x), call.constantLike(1, x));
  call.give(call.mul(call.create<graph::TanhOp>(half), sum));
}

/// The angle of (x, y): that of a right triangle, turned into its quadrant.
static void importAtan2(Call &call) {
  constexpr double kPi = 3.14159265358979323846;
  auto values = call.operands({"self", "other"}, true);
  Value y = values[0], x = values[1];
  Value zero = call.constantLike(0, y);
  Value sign = call.create<graph::SignOp>(y);
  Value half = call.mul(sign, call.constantLike(kPi / 2, y));
  Value isBehind = call.compare(CompareKind::lt, x, zero);
  Value turn =
      call.select(call.compare(CompareKind::lt, y, zero),
                  call.constantLike(-kPi, y), call.constantLike(kPi, y));
  Value angle = call.create<graph::AtanOp>(call.div(y, x));
  angle = call.add(angle, call.select(isBehind, turn, zero));
  call.give(call.select(call.compare(CompareKind::eq, x, zero), half, angle));
}

// --- Comparison, choice, bits ------------------------------------------------

template <CompareKind kind> static void importCompare(Call &call) {
  auto values = call.operands({"self", "other"});
  call.give(call.compare(kind, values[0], values[1]));
}

static Value toBool(Call &call, Value x) {
  return call.castTo(x, call.getBoolType());
}

template <typename OpTy> static void importLogical(Call &call) {
  call.give(call.pointwise<OpTy>(
      {toBool(call, call.tensor("self")), toBool(call, call.tensor("other"))}));
}

static void importLogicalNot(Call &call) {
  call.give(call.create<graph::NotOp>(toBool(call, call.tensor("self"))));
}

static void importWhere(Call &call) {
  auto values = call.operands({"self", "other"});
  Value condition = toBool(call, call.tensor("condition"));
  call.give(call.select(condition, values[0], values[1]));
}

static void importMaskedFill(Call &call) {
  Value x = call.tensor("self"), mask = call.tensor("mask");
  if (x)
    call.give(call.select(
        mask, call.operand(call.get("value"), call.elementType(x)), x));
}

static void importClamp(Call &call) {
  SmallVector<const Item *> items = {&call.get("self")};
  for (StringRef name : {"min", "max"})
    if (call.has(name))
      items.push_back(&call.get(name));
  Type type = call.promote(items);
  Value x = call.operand(call.get("self"), type);
  if (call.has("min"))
    x = call.max(x, call.operand(call.get("min"), type));
  if (call.has("max"))
    x = call.min(x, call.operand(call.get("max"), type));
  call.give(x);
}

static void importIsNan(Call &call) {
  Value x = call.tensor("self");
  call.give(call.create<graph::IsNanOp>(call.toReal(x)));
}

static void importIsInf(Call &call) {
  call.give(call.create<graph::IsInfOp>(call.toReal(call.tensor("self"))));
}

static void importNanToNum(Call &call) {
  Value x = call.tensor("self");
  auto type = x ? dyn_cast<FloatType>(call.elementType(x)) : FloatType();
  if (!type)
    return call.give(x);
  double largest =
      llvm::APFloat::getLargest(type.getFloatSemantics()).convertToDouble();
  auto number = [&](StringRef name, double fallback) {
    return call.constantLike(call.has(name) ? call.real(name) : fallback, x);
  };
  Value infinity =
      call.constantLike(std::numeric_limits<double>::infinity(), x);
  Value isNan = call.create<graph::IsNanOp>(x);
  Value result = call.select(isNan, number("nan", 0), x);
  Value isHigh = call.compare(CompareKind::eq, x, infinity);
  result = call.select(isHigh, number("posinf", largest), result);
  Value isLow =
      call.compare(CompareKind::eq, x, call.create<graph::NegOp>(infinity));
  call.give(call.select(isLow, number("neginf", -largest), result));
}

// --- Types -------------------------------------------------------------------

/// The tensor itself where it has the type already, unless a copy is asked for.
static void giveAs(Call &call, Value x, Type type) {
  const Schema &schema = call.getSchema();
  bool copies =
      schema.find("copy") ? call.isTrue("copy") : schema.name == "_to_copy";
  if (type == call.elementType(x) && !copies)
    return call.giveSame("self");
  call.give(call.castTo(x, type));
}

static void importTo(Call &call) {
  if (Value x = call.tensor("self"))
    giveAs(call, x, call.type("dtype", call.elementType(x)));
}

static void importToOther(Call &call) {
  Value x = call.tensor("self"), other = call.tensor("other");
  if (!x || !other)
    return;
  giveAs(call, x, call.elementType(other));
}

static void importCopy(Call &call) { call.give(call.tensor("src")); }

static void importFill(Call &call) {
  Value x = call.tensor("self");
  if (x)
    call.give(call.broadcast(
        call.operand(call.get("value"), call.elementType(x)), call.extents(x)));
}

static void importZero(Call &call) {
  Value x = call.tensor("self");
  if (x)
    call.give(call.broadcast(call.constantLike(0, x), call.extents(x)));
}

static void importSame(Call &call) { call.giveSame("self"); }

static const OpRow rows[] = {
    {"__and__(Tensor self, Operand other) -> Tensor",
     importBinary<graph::AndOp>},
    {"__or__(Tensor self, Operand other) -> Tensor", importBinary<graph::OrOp>},
    {"__xor__(Tensor self, Operand other) -> Tensor",
     importBinary<graph::XorOp>},
    {"_to_copy(Tensor self, *, ScalarType? dtype=None) -> Tensor", importTo},
    {"abs(Tensor self) -> Tensor", importUnary<graph::AbsOp>},
    {"acos(Tensor self) -> Tensor", importReal<graph::AcosOp>},
    {"add(Operand self, Operand other, *, Scalar alpha=1) -> Tensor",
     importAdd},
    {"addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
     "-> Tensor",
     importAddc<graph::DivOp>},
    {"addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) "
     "-> Tensor",
     importAddc<graph::MulOp>},
    {"alias(Tensor self) -> Tensor(a)", importSame},
    {"asin(Tensor self) -> Tensor", importReal<graph::AsinOp>},
    {"atan(Tensor self) -> Tensor", importReal<graph::AtanOp>},
    {"atan2(Tensor self, Tensor other) -> Tensor", importAtan2},
    {"bitwise_and(Tensor self, Operand other) -> Tensor",
     importBinary<graph::AndOp>},
    {"bitwise_not(Tensor self) -> Tensor", importUnary<graph::NotOp>},
    {"bitwise_or(Tensor self, Operand other) -> Tensor",
     importBinary<graph::OrOp>},
    {"bitwise_xor(Tensor self, Operand other) -> Tensor",
     importBinary<graph::XorOp>},
    {"ceil(Tensor self) -> Tensor", importUnary<graph::CeilOp>},
    {"clamp(Tensor self, Operand? min=None, Operand? max=None) -> Tensor",
     importClamp},
    {"clip(Tensor self, Operand? min=None, Operand? max=None) -> Tensor",
     importClamp},
    {"copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
     importCopy},
    {"cos(Tensor self) -> Tensor", importReal<graph::CosOp>},
    {"cosh(Tensor self) -> Tensor", importReal<graph::CoshOp>},
    {"cpu(Tensor self) -> Tensor(a)", importSame},
    {"detach(Tensor self) -> Tensor(a)", importSame},
    {"div(Operand self, Operand other, *, str? rounding_mode=None) -> Tensor",
     importDivMode},
    {"eq(Operand self, Operand other) -> Tensor",
     importCompare<CompareKind::eq>},
    {"erf(Tensor self) -> Tensor", importReal<graph::ErfOp>},
    {"exp(Tensor self) -> Tensor", importReal<graph::ExpOp>},
    {"expm1(Tensor self) -> Tensor", importExpm1},
    {"fill(Tensor self, Operand value) -> Tensor", importFill},
    {"floor(Tensor self) -> Tensor", importUnary<graph::FloorOp>},
    {"floor_divide(Operand self, Operand other) -> Tensor", importFloorDivide},
    {"fmod(Operand self, Operand other) -> Tensor", importBinary<graph::RemOp>},
    {"ge(Operand self, Operand other) -> Tensor",
     importCompare<CompareKind::ge>},
    {"gt(Operand self, Operand other) -> Tensor",
     importCompare<CompareKind::gt>},
    {"isinf(Tensor self) -> Tensor", importIsInf},
    {"isnan(Tensor self) -> Tensor", importIsNan},
    {"le(Operand self, Operand other) -> Tensor",
     importCompare<CompareKind::le>},
    {"log(Tensor self) -> Tensor", importReal<graph::LogOp>},
    {"log1p(Tensor self) -> Tensor", importReal<graph::Log1pOp>},
    {"log2(Tensor self) -> Tensor", importLog2},
    {"logical_and(Tensor self, Tensor other) -> Tensor",
     importLogical<graph::AndOp>},
    {"logical_not(Tensor self) -> Tensor", importLogicalNot},
    {"logical_or(Tensor self, Tensor other) -> Tensor",
     importLogical<graph::OrOp>},
    {"logical_xor(Tensor self, Tensor other) -> Tensor",
     importLogical<graph::XorOp>},
    {"lt(Operand self, Operand other) -> Tensor",
     importCompare<CompareKind::lt>},
    {"masked_fill(Tensor self, Tensor mask, Operand value) -> Tensor",
     importMaskedFill},
    {"max(Tensor self, Tensor other) -> Tensor", importBinary<graph::MaxOp>},
    {"maximum(Tensor self, Tensor other) -> Tensor",
     importBinary<graph::MaxOp>},
    {"min(Tensor self, Tensor other) -> Tensor", importBinary<graph::MinOp>},
    {"minimum(Tensor self, Tensor other) -> Tensor",
     importBinary<graph::MinOp>},
    {"mul(Operand self, Operand other) -> Tensor", importMul},
    {"nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? "
     "neginf=None) -> Tensor",
     importNanToNum},
    {"ne(Operand self, Operand other) -> Tensor",
     importCompare<CompareKind::ne>},
    {"neg(Tensor self) -> Tensor", importUnary<graph::NegOp>},
    {"pow(Operand self, Operand exponent) -> Tensor", importPow},
    {"reciprocal(Tensor self) -> Tensor", importReal<graph::ReciprocalOp>},
    {"remainder(Operand self, Operand other) -> Tensor",
     importBinary<graph::ModOp>},
    {"round(Tensor self) -> Tensor", importUnary<graph::RoundOp>},
    {"rsqrt(Tensor self) -> Tensor", importReal<graph::RsqrtOp>},
    {"rsub(Operand self, Operand other, Scalar alpha=1) -> Tensor",
     importSub<true>},
    {"sign(Tensor self) -> Tensor", importUnary<graph::SignOp>},
    {"sin(Tensor self) -> Tensor", importReal<graph::SinOp>},
    {"sinh(Tensor self) -> Tensor", importReal<graph::SinhOp>},
    {"sqrt(Tensor self) -> Tensor", importReal<graph::SqrtOp>},
    {"square(Tensor self) -> Tensor", importSquare},
    {"sub(Operand self, Operand other, *, Scalar alpha=1) -> Tensor",
     importSub<false>},
    {"tan(Tensor self) -> Tensor", importReal<graph::TanOp>},
    {"to(Tensor self, ScalarType dtype, bool non_blocking=False, bool "
     "copy=False, Any? memory_format=None) -> Tensor",
     importTo},
    {"to(Tensor self, Tensor other, bool non_blocking=False, bool copy=False, "
     "Any? memory_format=None) -> Tensor",
     importToOther},
    {"to(Tensor self, Any? device=None, ScalarType? dtype=None, bool "
     "non_blocking=False, bool copy=False, Any? memory_format=None) -> "
     "Tensor",
     importTo},
    {"trunc(Tensor self) -> Tensor", importTrunc},
    {"type_as(Tensor self, Tensor other) -> Tensor", importToOther},
    {"where(Tensor condition, Operand self, Operand other) -> Tensor",
     importWhere},
    {"zero(Tensor self) -> Tensor", importZero},
};

ArrayRef<OpRow> getPointwiseOps() { return rows; }

} // namespace tcc::aten
