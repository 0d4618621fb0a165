//===- OpenCuda.h - Finds the device that a name is for ---------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_OPENCUDA_H
#define TCC_RUNTIME_DEVICES_CUDA_OPENCUDA_H

#include "runtime/base/Log.h"
#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/Driver.h"
#include "runtime/package/Reader.h"
#include "runtime/package/Tunings.h"

#include <optional>

namespace tcc::runtime::cuda {

/// A device of the machine's driver, or of the simulated one.
struct Choice {
  int ordinal = 0;
  bool isNumbered = false; ///< the name says which
  bool isEmulated = false;
};

/// Reads "cuda", "cuda:1", "emulated" or "emulated:1"; nothing for other names.
std::optional<Choice> parseChoice(std::string_view name);

/// The simulated driver, a plugin.
Result<const Driver *> findEmulatedDriver();

/// Opens the device, and the driver if need be, and loads the kernels of the
/// package. Libraries work as `tunings` know it is fastest.
Result<std::unique_ptr<Device>> openDevice(const Choice &choice,
                                           const Package &package,
                                           Tunings tunings, const LogSink &log);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_OPENCUDA_H
