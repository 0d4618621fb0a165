//===- MatrixMultiplier.h - Products as cuBLASLt describes them -*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_MATRIXMULTIPLIER_H
#define TCC_RUNTIME_DEVICES_EMULATED_MATRIXMULTIPLIER_H

#include "runtime/devices/libraries/CublasLt.h"

namespace tcc::emulated {

/// A description as it was read back: a column-major matrix, or one for each of
/// a batch.
struct BlasMatrix {
  uint32_t type = 0; ///< BlasType
  uint64_t rows = 0, columns = 0;
  int64_t leading = 0, batchStride = 0;
  int32_t batch = 1;
};

/// d = epilogue(alpha * op(a) * op(b) + beta * c); the bias runs along rows.
/// With kEpilogueSumsOfA (B) sums over k are stored in place of the bias.
/// With kEpilogueSum what gelu is of is stored in `sum`, or read for a
/// gradient.
struct BlasProduct {
  int32_t compute = runtime::cuda::kCompute32F;
  int32_t transposeA = 0, transposeB = 0;
  uint32_t epilogue = 1;
  void *bias = nullptr; ///< stored or read, as `sum`
  void *sum = nullptr;
  int64_t sumLeading = 0;
  BlasMatrix a, b, c, d;
  double alpha = 1, beta = 0;
};

struct BlasPlaces {
  const void *a, *b, *c;
  void *d;
};

/// Bytes of an element; 0 for a type that is not known.
size_t bytesOf(uint32_t blasType);

/// From the first element to the end of the last one.
size_t extentOf(const BlasMatrix &matrix);

/// An error unless shapes, leading dimensions and types go together as cuBLASLt
/// documents them.
runtime::Status checkProduct(const BlasProduct &product);

/// The second result's matrix.
BlasMatrix sumOf(const BlasProduct &product);

/// Elements of the bias, or of sums over k in its place; 0 without.
size_t countBias(const BlasProduct &product);

/// Computes it in f64. Requires checkProduct.
void multiply(const BlasProduct &product, const BlasPlaces &places);

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_MATRIXMULTIPLIER_H
