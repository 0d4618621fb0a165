//===- WorkName.h - Works of libraries as text ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_WORKNAME_H
#define TCC_RUNTIME_DEVICES_CUDA_WORKNAME_H

#include "runtime/devices/cuda/Library.h"

#include <string>

namespace tcc::runtime::cuda {

/// On one line, without tabs: works of one name are equal.
std::string nameWork(const MatrixProduct &product);
std::string nameWork(const Convolution &convolution);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_WORKNAME_H
