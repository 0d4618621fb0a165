//===- Roofline.h - What this machine could do at most ----------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_ROOFLINE_H
#define TCC_TOOLS_TCCRUN_ROOFLINE_H

#include <cstdint>

namespace tcc::tools {

/// Floating-point operations in a nanosecond, and bytes read.
struct Roofline {
  double flops = 0; ///< f32, by fused multiply-adds
  double bytes = 0; ///< 0: there was no memory to measure it with
};

/// GFLOP/s of this thread by its own time, so that other processes count only
/// by what they do to the frequency.
double measurePeak(double seconds);

/// Of so many threads at once that read `workingSet` bytes again and again.
Roofline measureRoofline(int threads, uint64_t workingSet);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_ROOFLINE_H
