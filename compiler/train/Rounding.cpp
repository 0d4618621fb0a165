#include "compiler/train/Rounding.h"

#include <cmath>

using namespace tcc::train;
using namespace tcc::graph;

static Expr abs(Expr x) { return x.make<AbsOp>(); }

/// x to nearest with `bits` bits, by two roundings of f32's own (Veltkamp,
/// 1968): casts within a kernel round nothing. |x| is below 2^100.
static Expr roundToBits(Expr x, int bits) {
  Expr large = x * (std::ldexp(1.0, 24 - bits) + 1);
  return large - (large - x);
}

namespace {

/// A value near x, and the next one on x's other side.
struct Neighbours {
  Expr nearest, other;
};

} // namespace

/// Around numbers of `bits` bits 5/8 to 5/4 of a distance leads to the next,
/// whichever of two distances it is at a power of two.
static Neighbours findNormal(Expr x, int bits) {
  Expr nearest = roundToBits(x, bits);
  Expr step = abs(nearest) * std::ldexp(1.25, -bits);
  Expr other = roundToBits(nearest + sign(x - nearest) * step, bits);
  return {nearest, other};
}

/// Below its normal range the values of f16 are 2^-24 apart, as f32's are
/// around 3/4.
static Neighbours findBelowNormal(Expr x) {
  Expr nearest = (x + 0.75) - 0.75;
  return {nearest, nearest + sign(x - nearest) * std::ldexp(1.0, -24)};
}

Expr tcc::train::roundRandomly(Expr x, Expr random, mlir::FloatType narrow) {
  bool isF16 = narrow.isF16();
  Neighbours around = findNormal(x, narrow.getFPMantissaWidth());
  if (isF16) {
    Neighbours small = findBelowNormal(x);
    Expr isSmall = abs(x) < std::ldexp(1.0, -14);
    around = {select(isSmall, small.nearest, around.nearest),
              select(isSmall, small.other, around.other)};
  }
  // Next to a value there is none but itself: 0 / 0 is no probability.
  Expr probability = (x - around.nearest) / (around.other - around.nearest);
  Expr rounded = select(compare(CompareKind::lt, random, probability),
                        around.other, around.nearest);
  constexpr double kMost = 1e30;
  return select(abs(x) < kMost, rounded, x);
}
