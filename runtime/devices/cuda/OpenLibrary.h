//===- OpenLibrary.h - Finds what has kernels, too --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_OPENLIBRARY_H
#define TCC_RUNTIME_DEVICES_CUDA_OPENLIBRARY_H

#include "runtime/devices/cuda/Library.h"
#include "runtime/devices/cuda/OpenCuda.h"

namespace tcc::runtime::cuda {

struct OpenedLibrary {
  std::unique_ptr<Library> library; ///< null: generated kernels do it all
  std::string note;                 ///< why a device has none
};

/// The libraries that have kernels of `program`, on the device whose context
/// is current. The environment's TCC_CUDA_LIB lists the folders to look into
/// first; "none" forbids libraries. The emulated device runs kernels, unless it
/// says "simulated".
Result<OpenedLibrary> openLibrary(const Choice &choice,
                                  const format::Program &program);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_OPENLIBRARY_H
