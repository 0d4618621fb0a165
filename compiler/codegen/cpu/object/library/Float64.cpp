// Sine, cosine and tangent for f64. Those of C libraries reduce large arguments
// in an array, which takes a GPU kernel memory of its own; here all arguments
// take one way, without branches or arrays (M. Payne and R. Hanek, Radian
// reduction for trigonometric functions, 1983). The polynomials are those of
// fdlibm (Sun Microsystems, 1993, freely given away).

#include <stdint.h>

#define TCC_INLINE static inline __attribute__((always_inline))
#define TCC_FUNCTION extern "C" __attribute__((always_inline))

using Wide = unsigned __int128;

TCC_INLINE double mulAdd(double x, double y, double z) {
  return __builtin_fma(x, y, z);
}
TCC_INLINE double fromBits(uint64_t bits) {
  return __builtin_bit_cast(double, bits);
}
TCC_INLINE uint64_t toBits(double x) { return __builtin_bit_cast(uint64_t, x); }

/// 64 zeros, then the bits of 2/pi after the binary point.
static const uint64_t kTwoOverPi[20] = {
    0x0000000000000000, 0xa2f9836e4e441529, 0xfc2757d1f534ddc0,
    0xdb6295993c439041, 0xfe5163abdebbc561, 0xb7246e3a424dd2e0,
    0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
    0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b,
    0x1ff897ffde05980f, 0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d, 0x7527bac7ebe5f17b, 0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab};
static const double kHalfPi = 0x1.921fb54442d18p+0;
static const double kHalfPiLow = 0x1.1a62633145c07p-54;

/// |x| = quadrant * pi/2 + high + low, with the rest at most pi/4 large.
struct Reduced {
  uint64_t quadrant; // modulo 4
  double high, low;
};

/// 64 bits of the table from a bit on.
TCC_INLINE uint64_t readTable(uint64_t word, uint64_t shift) {
  return kTwoOverPi[word] << shift | kTwoOverPi[word + 1] >> 1 >> (63 - shift);
}

TCC_INLINE Reduced reduce(double x) {
  double magnitude = __builtin_fabs(x);
  bool isSmall = magnitude <= 0.5 * kHalfPi;
  bool isFinite = magnitude < __builtin_inf();
  // |x| = mantissa * 2^(exponent - 1075), and multiples of 4 quadrants say
  // nothing: of 2/pi the first bit of use has the weight 2^(1077 - exponent).
  uint64_t bits = toBits(isFinite && !isSmall ? magnitude : 1.0);
  uint64_t mantissa = (bits & 0xfffffffffffff) | 0x10000000000000;
  uint64_t first = (bits >> 52) - 1077 + 64;
  uint64_t word = first >> 6, shift = first & 63;
  // In units of 2^-190 quadrants, modulo 2^192.
  Wide low = Wide(mantissa) * readTable(word + 2, shift);
  Wide middle = Wide(mantissa) * readTable(word + 1, shift) + (low >> 64);
  uint64_t top = mantissa * readTable(word, shift) + uint64_t(middle >> 64);
  uint64_t quadrant = (top + (uint64_t(1) << 61)) >> 62;

  // The distance to that quadrant in units of 2^-128.
  Wide rest = (Wide(top) << 64 | uint64_t(middle)) << 2 | uint64_t(low) >> 62;
  bool isBefore = rest >> 127;
  rest = isBefore ? -rest : rest;
  uint64_t places = uint64_t(rest >> 64)
                        ? __builtin_clzll(uint64_t(rest >> 64) | 1)
                        : 64 + __builtin_clzll(uint64_t(rest) | 1);
  rest <<= places;
  double scale = fromBits((1023 - 53 - places) << 52);
  scale = isBefore ? -scale : scale;
  double high = double(uint64_t(rest >> 75)) * scale;
  double tail =
      double(uint64_t(rest >> 22) & 0x1fffffffffffff) * 0x1p-53 * scale;
  double product = high * kHalfPi;
  double lost = mulAdd(high, kHalfPi, -product);
  lost = mulAdd(high, kHalfPiLow, mulAdd(tail, kHalfPi, lost));
  double sum = product + lost;
  if (isSmall)
    return {0, magnitude, 0};
  double nan = magnitude - magnitude;
  return {quadrant, isFinite ? sum : nan,
          isFinite ? product - sum + lost : nan};
}

/// The sine of high + low.
TCC_INLINE double sine(Reduced x) {
  double z = x.high * x.high, w = z * z, v = z * x.high;
  double p = mulAdd(z, 2.75573137070700676789e-06, -1.98412698298579493134e-04);
  double q = mulAdd(z, 1.58969099521155010221e-10, -2.50507602534068634195e-08);
  double r = mulAdd(z * w, q, mulAdd(z, p, 8.33333333332248946124e-03));
  double tail = mulAdd(z, 0.5 * x.low - v * r, -x.low);
  return x.high - mulAdd(v, 1.66666666666666324348e-01, tail);
}

/// The cosine of high + low.
TCC_INLINE double cosine(Reduced x) {
  double z = x.high * x.high, w = z * z;
  double p = mulAdd(z, 2.48015872894767294178e-05, -1.38888888888741095749e-03);
  double q = mulAdd(z, -1.13596475577881948265e-11, 2.08757232129817482790e-09);
  q = mulAdd(z, q, -2.75573143513906633035e-07);
  double r = mulAdd(z, mulAdd(z, p, 4.16666666666666019037e-02), w * w * q);
  double half = 0.5 * z, rest = 1.0 - half;
  return rest + ((1.0 - rest - half) + mulAdd(z, r, -x.high * x.low));
}

/// The sine of as many right angles more.
TCC_INLINE double turn(Reduced x, uint64_t angles) {
  uint64_t quadrant = x.quadrant + angles;
  double value = quadrant & 1 ? cosine(x) : sine(x);
  return fromBits(toBits(value) ^ quadrant >> 1 << 63);
}

TCC_INLINE double withSignOf(double value, double x) {
  return fromBits(toBits(value) ^ (toBits(x) & uint64_t(1) << 63));
}

/// Sine, at most 0.8 ulp.
TCC_FUNCTION double tcc_sin_f64(double x) {
  return withSignOf(turn(reduce(x), 0), x);
}

/// Cosine, at most 0.8 ulp.
TCC_FUNCTION double tcc_cos_f64(double x) { return turn(reduce(x), 1); }

/// Tangent, at most 2 ulp.
TCC_FUNCTION double tcc_tan_f64(double x) {
  Reduced reduced = reduce(x);
  return withSignOf(turn(reduced, 0) / turn(reduced, 1), x);
}
