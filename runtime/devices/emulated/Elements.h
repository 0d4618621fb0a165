//===- Elements.h - Elements of simulated libraries -------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_ELEMENTS_H
#define TCC_RUNTIME_DEVICES_EMULATED_ELEMENTS_H

#include "runtime/package/Program_generated.h"

#include <cstddef>
#include <cstdint>

namespace tcc::emulated {

using format::DType;

// Elements of the floats that libraries compute with: f64, f32, f16 and bf16.

size_t bytesOf(DType dtype);
double load(const void *base, int64_t index, DType dtype);
/// An f32 value to the nearest of tf32, ties to even; 10 bits of mantissa.
double roundToTf32(double value);
/// Rounds to nearest, ties to even.
void store(void *base, int64_t index, DType dtype, double value);

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_ELEMENTS_H
