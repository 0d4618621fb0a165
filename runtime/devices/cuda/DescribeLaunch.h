//===- DescribeLaunch.h - A launch as libraries know it ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_DESCRIBELAUNCH_H
#define TCC_RUNTIME_DEVICES_CUDA_DESCRIBELAUNCH_H

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/Library.h"

namespace tcc::runtime::cuda {

struct LaunchDescription {
  LibraryWork work;
  LibraryOperands operands;
};

/// What `kernel` computes at the addresses of a launch and the sizes of its
/// run; nothing where that is no library's, or of no elements. An error if an
/// operand leaves its buffer, which has one of `rooms` bytes.
Result<std::optional<LaunchDescription>>
describeLaunch(const Dispatch &dispatch, std::span<const uint64_t> rooms,
               std::span<const int64_t> sizes, const format::Kernel &kernel);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_DESCRIBELAUNCH_H
