//===- DefaultRounding.h - Kernels' floating-point environment --*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CPU_DEFAULTROUNDING_H
#define TCC_RUNTIME_DEVICES_CPU_DEFAULTROUNDING_H

#include <xmmintrin.h>

namespace tcc::runtime {

/// The floating-point environment that kernels are compiled for: results must
/// not depend on which thread of the embedder runs them, nor on its settings.
class DefaultRounding {
public:
  DefaultRounding() { _mm_setcsr(kNearestWithDenormals); }
  ~DefaultRounding() { _mm_setcsr(saved); }
  DefaultRounding(const DefaultRounding &) = delete;
  DefaultRounding &operator=(const DefaultRounding &) = delete;

private:
  static constexpr unsigned kNearestWithDenormals = 0x1f80;
  unsigned saved = _mm_getcsr();
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_CPU_DEFAULTROUNDING_H
