//===- WarpProduct.h - Products that a warp computes together ---*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_WARPPRODUCT_H
#define TCC_RUNTIME_DEVICES_EMULATED_WARPPRODUCT_H

#include "runtime/devices/emulated/EmulatedKernel.h"

#include <array>

namespace tcc::emulated {

/// One lane's part, as EmulatedCalls::multiply has it.
struct WarpFactors {
  PairKind kind = PairKind::f16;
  const uint32_t *words = nullptr;
  float *sums = nullptr;
};

/// d = a b^T + c of a [16][16], b [8][16] and c [16][8]: products are exact,
/// sums are rounded once.
void multiplyWarp(const std::array<WarpFactors, kWarpSize> &lanes);

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_WARPPRODUCT_H
