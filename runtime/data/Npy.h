//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_NPY_H
#define TCC_RUNTIME_DATA_NPY_H

#include "runtime/package/Tensor.h"

namespace tcc::runtime {

/// Parses the bytes of a .npy file, little-endian, C or Fortran order; `name`
/// is for errors.
Result<Tensor> parseNpy(std::span<const std::byte> bytes,
                        const std::string &name);
Result<Tensor> readNpy(const std::string &path);

/// Writes to a temporary name and renames it. bf16, which NumPy has not, is
/// written as f32.
Status writeNpy(const std::string &path, DType dtype,
                std::span<const int64_t> shape, const void *data);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_NPY_H
