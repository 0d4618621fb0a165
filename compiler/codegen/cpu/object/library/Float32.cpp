// The elementary functions that kernels spend their time in, for f32: compiled
// to bitcode, inlined into the loops that call them and vectorised there, so
// they have no branches and no calls. Everything else comes from the C library
// linked beside them. Errors were measured against f64 over all of f32's range;
// tests/numerics repeats that.
//
// Polynomials interpolate at Chebyshev nodes (docs/functions.md says how the
// coefficients were made); the range reductions are the classic ones
// (W. Cody and W. Waite, Software Manual for the Elementary Functions, 1980).

#include <stdint.h>

#define TCC_INLINE static inline __attribute__((always_inline))
#define TCC_FUNCTION extern "C" __attribute__((always_inline))

TCC_INLINE float mulAdd(float x, float y, float z) {
  return __builtin_fmaf(x, y, z);
}
TCC_INLINE float fromBits(uint32_t bits) {
  return __builtin_bit_cast(float, bits);
}
TCC_INLINE uint32_t toBits(float x) { return __builtin_bit_cast(uint32_t, x); }

static const float kInfinity = __builtin_inff();
static const float kLog2e = 1.44269504f;
// ln 2 in two parts: the first has few enough bits that n * kLn2High is exact.
static const float kLn2High = 0.693145752f;
static const float kLn2Low = 1.42860677e-6f;
// Adding it rounds to an integer, which stands in the low bits of the sum.
static const float kRounder = 12582912.0f; // 1.5 * 2^23

/// 2^n for -126 <= n <= 127
TCC_INLINE float powerOfTwo(int32_t n) {
  return fromBits(uint32_t(n + 127) << 23);
}

/// e^x, at most 1.1 ulp; denormal results are exact to their last bit or so.
TCC_FUNCTION float tcc_exp_f32(float x) {
  // NaN fails both tests and stays.
  float clamped = x > 89.0f ? 89.0f : x;
  bool vanishes = x < -104.0f;
  clamped = vanishes ? -104.0f : clamped;
  float shifted = mulAdd(clamped, kLog2e, kRounder);
  float n = shifted - kRounder;
  float r = mulAdd(n, -kLn2High, clamped);
  r = mulAdd(n, -kLn2Low, r);
  float p = mulAdd(1.392692661e-03f, r, 8.363773874e-03f);
  p = mulAdd(p, r, 4.166655011e-02f);
  p = mulAdd(p, r, 1.666657338e-01f);
  p = mulAdd(p, r, 5.000000000e-01f);
  p = mulAdd(p, r * r, r) + 1.0f;
  // In two steps, as 2^n may be denormal or too large.
  int32_t exponent = int32_t(toBits(shifted) - toBits(kRounder));
  int32_t half = exponent >> 1;
  // What vanishes does so without a denormal, which takes a hundred cycles:
  // scores that a mask made very negative are many.
  float rest = vanishes ? 0.0f : powerOfTwo(exponent - half);
  return p * powerOfTwo(half) * rest;
}

/// e^x - 1, at most 1.9 ulp.
TCC_FUNCTION float tcc_expm1_f32(float x) {
  float p = mulAdd(2.773826791e-06f, x, 2.500074579e-05f);
  p = mulAdd(p, x, 1.984086231e-04f);
  p = mulAdd(p, x, 1.388844026e-03f);
  p = mulAdd(p, x, 8.333333627e-03f);
  p = mulAdd(p, x, 4.166666990e-02f);
  p = mulAdd(p, x, 1.666666667e-01f);
  p = mulAdd(p, x, 5.000000000e-01f);
  float near = mulAdd(p, x * x, x);
  float far = tcc_exp_f32(x) - 1.0f;
  return __builtin_fabsf(x) < 0.6f ? near : far;
}

/// Natural logarithm, at most 0.8 ulp.
TCC_FUNCTION float tcc_log_f32(float x) {
  bool isDenormal = x < 1.17549435e-38f;
  float scaled = isDenormal ? x * 8388608.0f : x; // 2^23
  // x = 2^e * m with m in [sqrt(1/2), sqrt(2))
  uint32_t bits = toBits(scaled) - 0x3f3504f3u;
  int32_t e = int32_t(bits) >> 23;
  float f = fromBits((bits & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
  float exponent = float(e) - (isDenormal ? 23.0f : 0.0f);
  float p = mulAdd(6.971611471e-02f, f, -1.147973385e-01f);
  p = mulAdd(p, f, 1.168541992e-01f);
  p = mulAdd(p, f, -1.242568733e-01f);
  p = mulAdd(p, f, 1.424905765e-01f);
  p = mulAdd(p, f, -1.666780232e-01f);
  p = mulAdd(p, f, 2.000071575e-01f);
  p = mulAdd(p, f, -2.499999696e-01f);
  p = mulAdd(p, f, 3.333333118e-01f);
  float square = f * f;
  float tail = mulAdd(exponent, kLn2Low, p * (square * f));
  tail = mulAdd(-0.5f, square, tail);
  float result = mulAdd(exponent, kLn2High, f + tail);
  result = x == kInfinity ? x : result;
  result = x == 0.0f ? -kInfinity : result;
  return x < 0.0f || x != x ? __builtin_nanf("") : result;
}

/// log(1 + x), at most 1.5 ulp.
TCC_FUNCTION float tcc_log1p_f32(float x) {
  // What 1 + x rounds away is put back to first order.
  float sum = 1.0f + x;
  float lost = x - (sum - 1.0f);
  float result = tcc_log_f32(sum) + lost / sum;
  result = sum == 1.0f ? x : result;
  result = sum == 0.0f ? -kInfinity : result;
  return x == kInfinity ? x : result;
}

/// Hyperbolic tangent, at most 2.4 ulp.
TCC_FUNCTION float tcc_tanh_f32(float x) {
  float magnitude = __builtin_fabsf(x);
  // Beyond 9.02 the result rounds to 1; NaN stays.
  float bounded = magnitude > 10.0f ? 10.0f : magnitude;
  float e = tcc_expm1_f32(2.0f * bounded);
  return __builtin_copysignf(e / (e + 2.0f), x);
}

/// Error function, at most 1.3 ulp.
TCC_FUNCTION float tcc_erf_f32(float x) {
  float t = __builtin_fabsf(x), s = x * x;
  // erf(x) = x + x * p(x^2) near zero.
  float p = mulAdd(8.316879718e-05f, s, -8.130444670e-04f);
  p = mulAdd(p, s, 5.199989255e-03f);
  p = mulAdd(p, s, -2.685899742e-02f);
  p = mulAdd(p, s, 1.128368872e-01f);
  p = mulAdd(p, s, -3.761263333e-01f);
  p = mulAdd(p, s, 1.283791666e-01f);
  float near = mulAdd(p, t, t);
  // erf(x) = 1 - e^-(x + x * q(x)) elsewhere; 1 beyond 4.
  float bounded = t > 4.0f ? 4.0f : t;
  float q = mulAdd(-1.046065682e-06f, bounded, 3.438850877e-05f);
  q = mulAdd(q, bounded, -4.988250082e-04f);
  q = mulAdd(q, bounded, 4.303789308e-03f);
  q = mulAdd(q, bounded, -2.513955031e-02f);
  q = mulAdd(q, bounded, 1.078556529e-01f);
  q = mulAdd(q, bounded, 6.341481838e-01f);
  q = mulAdd(q, bounded, 1.289027981e-01f);
  float far = 1.0f - tcc_exp_f32(-mulAdd(q, bounded, bounded));
  return __builtin_copysignf(t < 0.93f ? near : far, x);
}
