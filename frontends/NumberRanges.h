//===- NumberRanges.h - What elements may be --------------------*- C++ -*-===//
//
// Sizes that a run computes from other sizes, floats among them, are bounded by
// interval arithmetic. It bounds buffers only: a run in which a size is larger
// ends with an error.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_FRONTENDS_NUMBERRANGES_H
#define TCC_FRONTENDS_NUMBERRANGES_H

#include "frontends/Sizes.h"
#include <cmath>

namespace tcc {

/// One element of a tensor of static shape, in row-major order.
struct TensorElement {
  mlir::Value tensor;
  int64_t position;
};

/// Where an element comes from, through ops that only move elements.
TensorElement findSource(TensorElement element);

struct NumberRange {
  double min = -INFINITY, max = INFINITY; ///< inclusive; NaN is left out
};

/// What bounds an element of the module.
NumberRange findNumberRange(TensorElement element, const Sizes &sizes);

} // namespace tcc

#endif // TCC_FRONTENDS_NUMBERRANGES_H
