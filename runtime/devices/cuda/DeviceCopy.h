//===- DeviceCopy.h - Copies between places of a device ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_DEVICECOPY_H
#define TCC_RUNTIME_DEVICES_CUDA_DEVICECOPY_H

#include "runtime/devices/cuda/Driver.h"

#include <span>

namespace tcc::runtime::cuda {

/// Copies on a stream between places that may overlap, by way of `passage`: the
/// driver does not say what becomes of that.
Error copyOnDevice(const Driver &driver, void *to, const void *from,
                   size_t bytes, std::span<std::byte> passage,
                   StreamHandle stream);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_DEVICECOPY_H
