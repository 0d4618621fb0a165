//===- Widen.h - Elements of a wider type -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_WIDEN_H
#define TCC_RUNTIME_DATA_WIDEN_H

#include "runtime/package/Tensor.h"

namespace tcc::runtime {

/// The tensor with elements of `dtype` where that holds every value: integers
/// in wider ones, f16 and f32 in wider floats. Otherwise the tensor as it is.
Result<Tensor> widen(Tensor tensor, DType dtype);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_WIDEN_H
