#include "dialects/graph/evaluate/ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MathExtras.h"
#include <bit>
#include <cmath>
#include <limits>

using namespace mlir;

namespace tcc {
namespace {

// --- Floats ------------------------------------------------------------------

template <double (*F)(double)>
Scalar unary(const Instruction &, const Scalar *x) {
  return {.f = F(x[0].f)};
}
template <double (*F)(double, double)>
Scalar binary(const Instruction &, const Scalar *x) {
  return {.f = F(x[0].f, x[1].f)};
}

double add(double a, double b) { return a + b; }
double sub(double a, double b) { return a - b; }
double mul(double a, double b) { return a * b; }
double div(double a, double b) { return a / b; }
double neg(double a) { return -a; }
double rsqrt(double a) { return 1.0 / std::sqrt(a); }

/// IEEE 754-2019 maximum: NaN if either is NaN, and +0 > -0.
double maximum(double a, double b) {
  if (std::isnan(a) || std::isnan(b))
    return std::numeric_limits<double>::quiet_NaN();
  if (a == b)
    return std::signbit(a) ? b : a;
  return a > b ? a : b;
}
double minimum(double a, double b) { return -maximum(-a, -b); }

Scalar fusedMultiplyAdd(const Instruction &, const Scalar *x) {
  return {.f = std::fma(x[0].f, x[1].f, x[2].f)};
}
Scalar powerOfInteger(const Instruction &, const Scalar *x) {
  return {.f = std::pow(x[0].f, double(x[1].i))};
}

bool holds(arith::CmpFPredicate predicate, double a, double b) {
  using P = arith::CmpFPredicate;
  bool unordered = std::isnan(a) || std::isnan(b);
  switch (predicate) {
  case P::AlwaysFalse:
    return false;
  case P::AlwaysTrue:
    return true;
  case P::ORD:
    return !unordered;
  case P::UNO:
    return unordered;
  case P::OEQ:
    return a == b;
  case P::OGT:
    return a > b;
  case P::OGE:
    return a >= b;
  case P::OLT:
    return a < b;
  case P::OLE:
    return a <= b;
  case P::ONE:
    return !unordered && a != b;
  case P::UEQ:
    return unordered || a == b;
  case P::UGT:
    return !(a <= b);
  case P::UGE:
    return !(a < b);
  case P::ULT:
    return !(a >= b);
  case P::ULE:
    return !(a > b);
  case P::UNE:
    return a != b;
  }
  return false;
}
Scalar compareFloat(const Instruction &op, const Scalar *x) {
  return {.i = holds(arith::CmpFPredicate(op.predicate), x[0].f, x[1].f)};
}

// --- Integers ----------------------------------------------------------------

// Operands are sign-extended; so is what a function returns.

template <uint64_t (*F)(uint64_t, uint64_t)>
Scalar wrapping(const Instruction &op, const Scalar *x) {
  return {.i = signExtend(int64_t(F(uint64_t(x[0].i), uint64_t(x[1].i))),
                          op.width)};
}
uint64_t addInteger(uint64_t a, uint64_t b) { return a + b; }
uint64_t subInteger(uint64_t a, uint64_t b) { return a - b; }
uint64_t mulInteger(uint64_t a, uint64_t b) { return a * b; }
uint64_t andInteger(uint64_t a, uint64_t b) { return a & b; }
uint64_t orInteger(uint64_t a, uint64_t b) { return a | b; }
uint64_t xorInteger(uint64_t a, uint64_t b) { return a ^ b; }

template <int64_t (*F)(int64_t, int64_t)>
Scalar signedDivision(const Instruction &op, const Scalar *x) {
  int64_t a = x[0].i, b = x[1].i;
  if (b == 0) // undefined in the IR, so that the result is never read
    return {.i = 0};
  if (b == -1 && a == std::numeric_limits<int64_t>::min())
    return {.i = F(a, 1) == a ? a : 0};
  return {.i = signExtend(F(a, b), op.width)};
}
int64_t divSigned(int64_t a, int64_t b) { return a / b; }
int64_t remSigned(int64_t a, int64_t b) { return a % b; }
int64_t floorDivSigned(int64_t a, int64_t b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}
int64_t ceilDivSigned(int64_t a, int64_t b) {
  return a / b + (a % b != 0 && (a < 0) == (b < 0));
}

template <uint64_t (*F)(uint64_t, uint64_t)>
Scalar unsignedBinary(const Instruction &op, const Scalar *x) {
  uint64_t a = zeroExtend(x[0].i, op.width), b = zeroExtend(x[1].i, op.width);
  return {.i = signExtend(int64_t(F(a, b)), op.width)};
}
uint64_t divUnsigned(uint64_t a, uint64_t b) { return b ? a / b : 0; }
uint64_t remUnsigned(uint64_t a, uint64_t b) { return b ? a % b : 0; }
uint64_t ceilDivUnsigned(uint64_t a, uint64_t b) {
  return b ? a / b + (a % b != 0) : 0;
}
uint64_t maxUnsigned(uint64_t a, uint64_t b) { return std::max(a, b); }
uint64_t minUnsigned(uint64_t a, uint64_t b) { return std::min(a, b); }
uint64_t shiftRight(uint64_t a, uint64_t b) { return b < 64 ? a >> b : 0; }
uint64_t shiftLeft(uint64_t a, uint64_t b) { return b < 64 ? a << b : 0; }

Scalar shiftRightSigned(const Instruction &op, const Scalar *x) {
  uint64_t by = zeroExtend(x[1].i, op.width);
  return {.i = x[0].i >> std::min<uint64_t>(by, 63)};
}
Scalar maxSigned(const Instruction &, const Scalar *x) {
  return {.i = std::max(x[0].i, x[1].i)};
}
Scalar minSigned(const Instruction &, const Scalar *x) {
  return {.i = std::min(x[0].i, x[1].i)};
}
Scalar absInteger(const Instruction &op, const Scalar *x) {
  uint64_t value = uint64_t(x[0].i);
  return {.i = signExtend(int64_t(x[0].i < 0 ? 0 - value : value), op.width)};
}
Scalar powInteger(const Instruction &op, const Scalar *x) {
  if (x[1].i < 0) // the truncated reciprocal: zero but for 1 and -1
    return {.i = x[0].i == 1 ? 1 : x[0].i == -1 ? (x[1].i % 2 ? -1 : 1) : 0};
  uint64_t result = 1, factor = uint64_t(x[0].i);
  for (uint64_t rest = uint64_t(x[1].i); rest; rest >>= 1, factor *= factor)
    result *= rest & 1 ? factor : 1;
  return {.i = signExtend(int64_t(result), op.width)};
}

bool holds(arith::CmpIPredicate predicate, int64_t a, int64_t b,
           unsigned width) {
  using P = arith::CmpIPredicate;
  // An i1 is 0 or 1 here, but 0 or -1 as a signed number.
  int64_t sa = width == 1 ? -a : a, sb = width == 1 ? -b : b;
  uint64_t ua = zeroExtend(a, width), ub = zeroExtend(b, width);
  switch (predicate) {
  case P::eq:
    return a == b;
  case P::ne:
    return a != b;
  case P::slt:
    return sa < sb;
  case P::sle:
    return sa <= sb;
  case P::sgt:
    return sa > sb;
  case P::sge:
    return sa >= sb;
  case P::ult:
    return ua < ub;
  case P::ule:
    return ua <= ub;
  case P::ugt:
    return ua > ub;
  case P::uge:
    return ua >= ub;
  }
  return false;
}
Scalar compareInteger(const Instruction &op, const Scalar *x) {
  return {.i = holds(arith::CmpIPredicate(op.predicate), x[0].i, x[1].i,
                     op.operandWidth)};
}

// --- Conversions -------------------------------------------------------------

Scalar choose(const Instruction &, const Scalar *x) {
  return x[0].i ? x[1] : x[2];
}
Scalar round(const Instruction &op, const Scalar *x) {
  return roundTo(op.type, x[0]);
}
Scalar extendSigned(const Instruction &op, const Scalar *x) {
  int64_t value = op.operandWidth == 1 ? -x[0].i : x[0].i;
  return {.i = signExtend(value, op.width)};
}
Scalar extendUnsigned(const Instruction &op, const Scalar *x) {
  return {
      .i = signExtend(int64_t(zeroExtend(x[0].i, op.operandWidth)), op.width)};
}
Scalar signedToFloat(const Instruction &op, const Scalar *x) {
  return {.f = double(op.operandWidth == 1 ? -x[0].i : x[0].i)};
}
Scalar unsignedToFloat(const Instruction &op, const Scalar *x) {
  return {.f = double(zeroExtend(x[0].i, op.operandWidth))};
}

/// Saturates: a value out of range is undefined in the IR.
Scalar floatToSigned(const Instruction &op, const Scalar *x) {
  double limit = std::ldexp(1.0, int(op.width) - 1);
  if (std::isnan(x[0].f))
    return {.i = 0};
  if (x[0].f >= limit)
    return {.i = llvm::maxIntN(op.width)};
  return {.i = x[0].f < -limit ? llvm::minIntN(op.width) : int64_t(x[0].f)};
}
Scalar floatToUnsigned(const Instruction &op, const Scalar *x) {
  double limit = std::ldexp(1.0, int(op.width));
  if (!(x[0].f > 0))
    return {.i = 0};
  if (x[0].f >= limit)
    return {.i = signExtend(-1, op.width)};
  return {.i = signExtend(int64_t(uint64_t(x[0].f)), op.width)};
}

/// Between f32 and i32, f64 and i64: the widths that scalar bodies use.
Scalar reinterpret(const Instruction &op, const Scalar *x) {
  if (!isa<FloatType>(op.type)) {
    if (op.width == 64)
      return {.i = std::bit_cast<int64_t>(x[0].f)};
    return {.i = std::bit_cast<int32_t>(float(x[0].f))};
  }
  if (op.width == 64)
    return {.f = std::bit_cast<double>(x[0].i)};
  return {.f = double(std::bit_cast<float>(int32_t(x[0].i)))};
}

struct Row {
  llvm::StringLiteral name;
  Instruction::Function function;
};

constexpr Row kFloatRows[] = {
    {"arith.addf", binary<add>},
    {"arith.subf", binary<sub>},
    {"arith.mulf", binary<mul>},
    {"arith.divf", binary<div>},
    {"arith.remf", binary<std::fmod>},
    {"arith.negf", unary<neg>},
    {"arith.maximumf", binary<maximum>},
    {"arith.minimumf", binary<minimum>},
    {"arith.maxnumf", binary<std::fmax>},
    {"arith.minnumf", binary<std::fmin>},
    {"arith.cmpf", compareFloat},
    {"math.absf", unary<std::fabs>},
    {"math.acos", unary<std::acos>},
    {"math.acosh", unary<std::acosh>},
    {"math.asin", unary<std::asin>},
    {"math.asinh", unary<std::asinh>},
    {"math.atan", unary<std::atan>},
    {"math.atan2", binary<std::atan2>},
    {"math.atanh", unary<std::atanh>},
    {"math.ceil", unary<std::ceil>},
    {"math.copysign", binary<std::copysign>},
    {"math.cos", unary<std::cos>},
    {"math.cosh", unary<std::cosh>},
    {"math.erf", unary<std::erf>},
    {"math.exp", unary<std::exp>},
    {"math.exp2", unary<std::exp2>},
    {"math.expm1", unary<std::expm1>},
    {"math.floor", unary<std::floor>},
    {"math.fma", fusedMultiplyAdd},
    {"math.fpowi", powerOfInteger},
    {"math.log", unary<std::log>},
    {"math.log10", unary<std::log10>},
    {"math.log1p", unary<std::log1p>},
    {"math.log2", unary<std::log2>},
    {"math.powf", binary<std::pow>},
    {"math.round", unary<std::round>},
    {"math.roundeven", unary<std::nearbyint>},
    {"math.rsqrt", unary<rsqrt>},
    {"math.sin", unary<std::sin>},
    {"math.sinh", unary<std::sinh>},
    {"math.sqrt", unary<std::sqrt>},
    {"math.tan", unary<std::tan>},
    {"math.tanh", unary<std::tanh>},
    {"math.trunc", unary<std::trunc>},
};

constexpr Row kIntegerRows[] = {
    {"arith.addi", wrapping<addInteger>},
    {"arith.subi", wrapping<subInteger>},
    {"arith.muli", wrapping<mulInteger>},
    {"arith.andi", wrapping<andInteger>},
    {"arith.ori", wrapping<orInteger>},
    {"arith.xori", wrapping<xorInteger>},
    {"arith.divsi", signedDivision<divSigned>},
    {"arith.remsi", signedDivision<remSigned>},
    {"arith.floordivsi", signedDivision<floorDivSigned>},
    {"arith.ceildivsi", signedDivision<ceilDivSigned>},
    {"arith.divui", unsignedBinary<divUnsigned>},
    {"arith.remui", unsignedBinary<remUnsigned>},
    {"arith.ceildivui", unsignedBinary<ceilDivUnsigned>},
    {"arith.maxsi", maxSigned},
    {"arith.minsi", minSigned},
    {"arith.maxui", unsignedBinary<maxUnsigned>},
    {"arith.minui", unsignedBinary<minUnsigned>},
    {"arith.shli", unsignedBinary<shiftLeft>},
    {"arith.shrui", unsignedBinary<shiftRight>},
    {"arith.shrsi", shiftRightSigned},
    {"arith.cmpi", compareInteger},
    {"math.absi", absInteger},
    {"math.ipowi", powInteger},
    {"arith.select", choose},
    {"arith.extf", round},
    {"arith.truncf", round},
    {"arith.extsi", extendSigned},
    {"arith.extui", extendUnsigned},
    {"arith.trunci", extendSigned},
    {"arith.index_cast", extendSigned},
    {"arith.index_castui", extendUnsigned},
    {"arith.sitofp", signedToFloat},
    {"arith.uitofp", unsignedToFloat},
    {"arith.fptosi", floatToSigned},
    {"arith.fptoui", floatToUnsigned},
    {"arith.bitcast", reinterpret},
};

} // namespace

Instruction::Function getScalarFunction(StringRef name) {
  for (ArrayRef<Row> rows : {ArrayRef(kFloatRows), ArrayRef(kIntegerRows)})
    for (const Row &row : rows)
      if (row.name == name)
        return row.function;
  return nullptr;
}

} // namespace tcc
