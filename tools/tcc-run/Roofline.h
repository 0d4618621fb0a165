//===- Roofline.h - What this machine could do at most ----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_ROOFLINE_H
#define TCC_TOOLS_TCCRUN_ROOFLINE_H

#include "runtime/package/DType.h"

#include <cstdint>

namespace tcc::tools {

/// Floating-point operations in a nanosecond, and bytes read.
struct Roofline {
  double flops = 0; ///< f32, by fused multiply-adds
  double bytes = 0; ///< 0: there was no memory to measure it with
};

/// Bytes of the widest vectors of this CPU.
int getWidestVector();

/// GFLOP/s of this thread by its own time, so that other processes count only
/// by what they do to the frequency.
/// Vectors have 32 or 64 bytes, or are the widest of the CPU.
double measurePeak(double seconds, int vectorBytes = getWidestVector());

/// GFLOP/s of `threads` at once that multiply numbers of a type and add up the
/// products as kernels do, by the fastest instructions of this CPU: f32 and
/// f64 by fused multiply-adds, bf16 by those of pairs (AVX512-BF16) or of tiles
/// (AMX), if it has them, and else as f32.
double measureProducts(runtime::DType operands, int threads, double seconds);

/// The roofline of `threads` at once that read `workingSet` bytes repeatedly.
Roofline measureRoofline(int threads, uint64_t workingSet);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_ROOFLINE_H
