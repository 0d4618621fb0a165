//===- NpzSource.h - Samples from a NumPy archive ---------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_NPZSOURCE_H
#define TCC_RUNTIME_DATA_NPZSOURCE_H

#include "runtime/data/SampleSource.h"

namespace tcc::runtime {

/// Reads the archive into memory: an array for each tensor, by its name.
Result<std::unique_ptr<SampleSource>>
openNpzSource(const std::string &path, std::span<const BatchTensor> tensors);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_NPZSOURCE_H
