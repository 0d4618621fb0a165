//===- Npy.h - NumPy's array files ------------------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_NPY_H
#define TCC_RUNTIME_DATA_NPY_H

#include "runtime/package/Tensor.h"

namespace tcc::runtime {

/// Where a .npy file has its elements.
struct NpyLayout {
  DType dtype = DType::f32;
  bool isFortran = false; ///< the first axis is that of neighbours
  std::vector<int64_t> shape;
  uint64_t offset = 0; ///< of the first element
};

/// Bytes of a file that its header is expected in: version 2 allows 4 GiB,
/// which numpy writes for structures of many fields alone.
inline constexpr uint64_t kNpyHead = 1 << 16;

/// From the first bytes of a file of `size` bytes, which has all elements and
/// nothing else; `name` is for errors.
Result<NpyLayout> parseNpyLayout(std::span<const std::byte> head, uint64_t size,
                                 const std::string &name);

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
