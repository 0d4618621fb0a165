//===- WorkName.h - Works of libraries as text ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_WORKNAME_H
#define TCC_RUNTIME_DEVICES_CUDA_WORKNAME_H

#include "runtime/package/LibraryWork.h"

#include <string>

namespace tcc::runtime::cuda {

/// On one line, without tabs: works of one name are equal.
std::string nameWork(const LibraryWork &work);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_WORKNAME_H
