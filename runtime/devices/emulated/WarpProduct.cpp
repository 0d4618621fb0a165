#include "runtime/devices/emulated/WarpProduct.h"

#include <bit>
#include <cmath>

using namespace tcc::emulated;

static float widen(uint16_t bits, PairKind kind) {
  if (kind == PairKind::bf16)
    return std::bit_cast<float>(uint32_t(bits) << 16);
  int exponent = bits >> 10 & 31, mantissa = bits & 1023;
  float magnitude = exponent == 0 ? std::ldexp(float(mantissa), -24)
                    : exponent < 31
                        ? std::ldexp(float(mantissa + 1024), exponent - 25)
                    : mantissa ? NAN
                               : INFINITY;
  return bits >> 15 ? -magnitude : magnitude;
}

namespace {

/// [rows][16], of whose word (row, pair) lane row % 8 * 4 + pair % 4 has one.
template <int rows> using Factor = std::array<std::array<float, 16>, rows>;

} // namespace

/// A lane's words stand from `first` on: those of the first eight rows and the
/// next ones, then the same of the other half of the columns.
template <int rows>
static Factor<rows> gather(const std::array<WarpFactors, kWarpSize> &lanes,
                           int first) {
  Factor<rows> factor;
  for (int row = 0; row < rows; ++row)
    for (int pair = 0; pair < 8; ++pair) {
      const WarpFactors &lane = lanes[row % 8 * 4 + pair % 4];
      uint32_t word = lane.words[first + row / 8 + pair / 4 * (rows / 8)];
      factor[row][2 * pair] = widen(uint16_t(word), lane.kind);
      factor[row][2 * pair + 1] = widen(uint16_t(word >> 16), lane.kind);
    }
  return factor;
}

void tcc::emulated::multiplyWarp(
    const std::array<WarpFactors, kWarpSize> &lanes) {
  Factor<16> a = gather<16>(lanes, 0);
  Factor<8> b = gather<8>(lanes, 4);
  for (uint32_t lane = 0; lane < kWarpSize; ++lane)
    for (int i = 0; i < 4; ++i) {
      const auto &row = a[lane / 4 + i / 2 * 8];
      const auto &column = b[lane % 4 * 2 + i % 2];
      double sum = lanes[lane].sums[i];
      for (int k = 0; k < 16; ++k)
        sum += double(row[k]) * column[k];
      lanes[lane].sums[i] = float(sum);
    }
}
