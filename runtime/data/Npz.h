//===- Npz.h - NumPy's archives of arrays -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_NPZ_H
#define TCC_RUNTIME_DATA_NPZ_H

#include "runtime/package/Tensor.h"

namespace tcc::runtime {

/// The names of the arrays of an .npz file.
Result<std::vector<std::string>> listNpz(const std::string &path);

/// Reads the array `name` of an .npz file: a zip archive, its members stored or
/// deflated. The only array of an archive is found under any name.
Result<Tensor> readNpz(const std::string &path, std::string_view name);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_NPZ_H
