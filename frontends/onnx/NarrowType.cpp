#include "frontends/onnx/NarrowType.h"

#include "onnx.pb.h"

#include <cmath>
#include <limits>

using namespace mlir;
using onnx::TensorProto;
using tcc::graph::CompareKind;

namespace tcc::onnx_import {

using Specials = NarrowType::Specials;

static constexpr NarrowType types[] = {
    {"int2", TensorProto::INT2, 2, false, false},
    {"int4", TensorProto::INT4, 4, false, false},
    {"uint2", TensorProto::UINT2, 2, false, true},
    {"uint4", TensorProto::UINT4, 4, false, true},
    {"float4e2m1", TensorProto::FLOAT4E2M1, 4, true, true, 1, 1,
     Specials::none},
    {"float8e4m3fn", TensorProto::FLOAT8E4M3FN, 8, true, true, 3, 7,
     Specials::nan},
    {"float8e4m3fnuz", TensorProto::FLOAT8E4M3FNUZ, 8, true, true, 3, 8,
     Specials::nanForMinus},
    {"float8e5m2", TensorProto::FLOAT8E5M2, 8, true, true, 2, 15,
     Specials::infinities},
    {"float8e5m2fnuz", TensorProto::FLOAT8E5M2FNUZ, 8, true, true, 2, 16,
     Specials::nanForMinus},
    {"float8e8m0", TensorProto::FLOAT8E8M0, 8, true, true, 0, 127,
     Specials::powers},
};

const NarrowType *findNarrowType(int32_t number) {
  for (const NarrowType &type : types)
    if (type.number == number)
      return &type;
  return nullptr;
}

Type getStorageType(const NarrowType &type, MLIRContext *context) {
  return IntegerType::get(context, 8,
                          type.isUnsigned ? IntegerType::Unsigned
                                          : IntegerType::Signless);
}

/// The bits of infinity and of a NaN.
static constexpr uint32_t kInfinityBits = 0x7f800000, kNanBits = 0x7fc00000;

namespace {

/// Arithmetic on tensors of ui32, the bits of floats.
struct Bits {
  Emitter &e;

  Type getType() const {
    return IntegerType::get(e.getContext(), 32, IntegerType::Unsigned);
  }
  Value number(uint32_t value) const { return e.constant(value, getType()); }
  Value left(Value x, Value count) const {
    return e.pointwise<graph::ShiftLeftOp>({x, count});
  }
  Value right(Value x, uint32_t count) const {
    return e.pointwise<graph::ShiftRightOp>({x, number(count)});
  }
  Value mask(Value x, uint32_t bits) const {
    return e.pointwise<graph::AndOp>({x, number(bits)});
  }
  Value join(Value x, Value y) const {
    return e.pointwise<graph::OrOp>({x, y});
  }
  /// The bits of x, f32 or ui32, as the other of them.
  Value read(Value x, Type element) const {
    return x ? e.create<graph::BitcastOp>(
                   x, {},
                   graph::withElementType(cast<RankedTensorType>(x.getType()),
                                          element))
             : nullptr;
  }
  Value is(CompareKind kind, Value x, uint32_t value) const {
    return e.compare(kind, x, number(value));
  }
};

/// Codes of magnitudes, without the sign.
struct Codes {
  uint32_t largest; ///< finite
  uint32_t beyond;  ///< of what is larger and does not saturate
  uint32_t nan;
};

} // namespace

static Codes getCodes(const NarrowType &type) {
  uint32_t all = (1u << (type.bits - 1)) - 1;
  uint32_t mantissa = (1u << type.mantissaBits) - 1, infinity = all - mantissa;
  switch (type.specials) {
  case Specials::none:
    return {all, all, all + 1};
  case Specials::nan:
    return {all - 1, all, all};
  case Specials::nanForMinus:
    return {all, all + 1, all + 1};
  case Specials::infinities:
    return {infinity - 1, infinity, infinity + (1u << (type.mantissaBits - 1))};
  case Specials::powers: // which have no sign
    return {254, 255, 255};
  }
  llvm_unreachable("not a kind of special values");
}

// --- From bytes --------------------------------------------------------------

static Value decodeFloat(Emitter &e, Value stored, const NarrowType &type) {
  Bits bits{e};
  unsigned m = type.mantissaBits, signBit = type.bits - 1;
  Value code = e.cast(stored, bits.getType());
  Value magnitude = bits.mask(code, (1u << signBit) - 1);
  Value mantissa = bits.mask(magnitude, (1u << m) - 1);
  Value exponent = bits.right(magnitude, m);
  Value leading = e.select(bits.is(CompareKind::eq, exponent, 0),
                           bits.number(0), bits.number(1u << m));
  // Subnormal numbers have the exponent of the least normal ones.
  Value shift = e.sub(e.max(exponent, bits.number(1)), bits.number(1));
  Type f32 = Float32Type::get(e.getContext());
  Value power =
      bits.left(e.add(shift, bits.number(uint32_t(128 - type.bias - int(m)))),
                bits.number(23));
  Value value =
      e.mul(e.cast(bits.join(mantissa, leading), f32), bits.read(power, f32));
  double infinity = std::numeric_limits<double>::infinity();
  if (type.specials == Specials::infinities)
    value = e.select(bits.is(CompareKind::eq, magnitude, getCodes(type).beyond),
                     e.constant(infinity, f32), value);
  Value isNegative = bits.is(CompareKind::ne, bits.right(code, signBit), 0);
  value = e.select(isNegative, e.create<graph::NegOp>(value), value);
  Value nan = e.constant(std::numeric_limits<double>::quiet_NaN(), f32);
  if (type.specials == Specials::nanForMinus)
    return e.select(bits.is(CompareKind::eq, code, getCodes(type).nan), nan,
                    value);
  if (type.specials == Specials::none)
    return value;
  uint32_t lastNumber = type.specials == Specials::nan ? getCodes(type).largest
                                                       : getCodes(type).beyond;
  return e.select(bits.is(CompareKind::gt, magnitude, lastNumber), nan, value);
}

/// The code is the exponent of an f32, but for the least, which is subnormal,
/// and NaN.
static Value decodePower(Emitter &e, Value stored, const NarrowType &type) {
  Bits bits{e};
  Value code = e.cast(stored, bits.getType());
  Value word = bits.left(code, bits.number(23));
  word =
      e.select(bits.is(CompareKind::eq, code, 0), bits.number(1u << 22), word);
  word = e.select(bits.is(CompareKind::eq, code, getCodes(type).nan),
                  bits.number(kNanBits), word);
  return bits.read(word, Float32Type::get(e.getContext()));
}

Value decode(Emitter &emitter, Value stored, const NarrowType &type) {
  if (type.specials == Specials::powers)
    return decodePower(emitter, stored, type);
  return type.isFloat ? decodeFloat(emitter, stored, type) : stored;
}

// --- To bytes ----------------------------------------------------------------

/// The code of |x| rounded to nearest even, which goes on counting beyond the
/// largest number. `magnitude` are the bits of |x|, a finite number.
static Value roundToCode(Emitter &e, Value x, Value magnitude,
                         const NarrowType &type) {
  Bits bits{e};
  unsigned m = type.mantissaBits, shift = 23 - m;
  // A carry out of the mantissa counts the exponent up.
  Value isOdd = bits.mask(bits.right(magnitude, shift), 1);
  Value half = bits.number((1u << (shift - 1)) - 1);
  Value rounded = bits.right(e.add(e.add(magnitude, half), isOdd), shift);
  Value normal = e.sub(rounded, bits.number(uint32_t(127 - type.bias) << m));
  // Below the normal numbers codes count the least subnormal one.
  Value units =
      e.mul(e.create<graph::AbsOp>(x),
            e.constantLike(std::ldexp(1.0, type.bias - 1 + int(m)), x));
  Value subnormal = e.cast(e.create<graph::RoundOp>(units), bits.getType());
  uint32_t leastNormal = uint32_t(128 - type.bias) << 23;
  return e.select(bits.is(CompareKind::lt, magnitude, leastNormal), subnormal,
                  normal);
}

static Value encodeFloat(Emitter &e, Value x, const NarrowType &type,
                         bool saturates) {
  Bits bits{e};
  x = e.cast(x, Float32Type::get(e.getContext()));
  Value word = bits.read(x, bits.getType());
  Value magnitude = bits.mask(word, 0x7fffffff);
  Codes codes = getCodes(type);
  uint32_t beyond = saturates ? codes.largest : codes.beyond;
  Value code = roundToCode(e, x, magnitude, type);
  Value isBeyond = e.pointwise<graph::OrOp>(
      {bits.is(CompareKind::gt, code, codes.largest),
       bits.is(CompareKind::ge, magnitude, kInfinityBits)});
  code = e.select(isBeyond, bits.number(beyond), code);
  code = e.select(bits.is(CompareKind::gt, magnitude, kInfinityBits),
                  bits.number(codes.nan), code);
  Value sign = bits.left(bits.right(word, 31), bits.number(type.bits - 1));
  if (type.specials == Specials::nanForMinus) // neither -0 nor a NaN with sign
    sign = e.select(
        e.pointwise<graph::OrOp>({bits.is(CompareKind::eq, code, 0),
                                  bits.is(CompareKind::eq, code, codes.nan)}),
        bits.number(0), sign);
  return e.cast(bits.join(code, sign), getStorageType(type, e.getContext()));
}

/// What is added to a mantissa of 23 bits, whose carry counts the exponent up.
static uint32_t getPowerCarry(PowerRounding rounding) {
  switch (rounding) {
  case PowerRounding::up:
    return (1u << 23) - 1;
  case PowerRounding::down:
    return 0;
  case PowerRounding::nearest:
    return 1u << 22;
  }
  llvm_unreachable("not a way of rounding");
}

static Value encodePower(Emitter &e, Value x, const NarrowType &type,
                         bool saturates, PowerRounding rounding) {
  Bits bits{e};
  x = e.cast(x, Float32Type::get(e.getContext()));
  Value magnitude = bits.mask(bits.read(x, bits.getType()), 0x7fffffff);
  // The least power is half of the least normal number: below that one what is
  // beyond the half is a mantissa of one bit less.
  constexpr uint32_t kLeast = 1u << 22, kLeastNormal = 1u << 23;
  Value doubled = bits.left(
      e.sub(e.max(magnitude, bits.number(kLeast)), bits.number(kLeast)),
      bits.number(1));
  Value scaled = e.select(bits.is(CompareKind::lt, magnitude, kLeastNormal),
                          doubled, magnitude);
  Value code =
      bits.right(e.add(scaled, bits.number(getPowerCarry(rounding))), 23);
  Codes codes = getCodes(type);
  code = e.select(bits.is(CompareKind::gt, code, codes.largest),
                  bits.number(saturates ? codes.largest : codes.beyond), code);
  if (!saturates)
    code = e.select(bits.is(CompareKind::lt, magnitude, kLeast),
                    bits.number(codes.nan), code);
  code = e.select(bits.is(CompareKind::gt, magnitude, kInfinityBits),
                  bits.number(codes.nan), code);
  return e.cast(code, getStorageType(type, e.getContext()));
}

/// The lowest bits of x, with their sign if the type has one.
static Value encodeInteger(Emitter &e, Value x, const NarrowType &type) {
  Type storage = getStorageType(type, e.getContext());
  Type wide = IntegerType::get(e.getContext(), 32, IntegerType::Unsigned);
  auto integer = [&](double value) { return e.constant(value, wide); };
  if (!x)
    return nullptr;
  if (isa<FloatType>(e.elementType(x)))
    x = e.cast(x, IntegerType::get(e.getContext(), 32));
  Value low = e.pointwise<graph::AndOp>(
      {e.cast(x, wide), integer((1 << type.bits) - 1)});
  if (type.isUnsigned)
    return e.cast(low, storage);
  // (low ^ sign) - sign extends the sign.
  Value sign = integer(1 << (type.bits - 1));
  return e.cast(e.sub(e.pointwise<graph::XorOp>({low, sign}), sign), storage);
}

Value encode(Emitter &emitter, Value x, const NarrowType &type, bool saturates,
             PowerRounding rounding) {
  if (type.specials == Specials::powers)
    return encodePower(emitter, x, type, saturates, rounding);
  return type.isFloat ? encodeFloat(emitter, x, type, saturates)
                      : encodeInteger(emitter, x, type);
}

} // namespace tcc::onnx_import
