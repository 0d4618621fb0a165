//===- Cubin.h - Whether a device's object file is whole --------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_CUBIN_H
#define TCC_RUNTIME_DEVICES_CUDA_CUBIN_H

#include <cstddef>
#include <span>

namespace tcc::runtime::cuda {

/// Whether the bytes are a cubin all of whose headers, segments, sections and
/// names lie inside them: a driver that loads one is not told how long it is.
bool isWholeCubin(std::span<const std::byte> bytes);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_CUBIN_H
