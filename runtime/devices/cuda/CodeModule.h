//===- CodeModule.h - The kernels of a package on a device ------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_CODEMODULE_H
#define TCC_RUNTIME_DEVICES_CUDA_CODEMODULE_H

#include "runtime/base/Log.h"
#include "runtime/devices/cuda/Driver.h"
#include "runtime/package/Image.h"
#include "runtime/package/Reader.h"

#include <optional>
#include <vector>

namespace tcc::runtime::cuda {

/// A kernel of the package that the device has.
struct Kernel {
  FunctionHandle function = nullptr; ///< null for a kernel of the host
  unsigned threads = 0;
  unsigned sharedBytes = 0; ///< beside what its code declares
};

/// Loaded code; unloaded when destroyed, with the device's context current.
class CodeModule {
public:
  CodeModule(CodeModule &&other) noexcept;
  ~CodeModule();

  /// Takes for each kernel the cubin for a device of this compute capability;
  /// PTX if there is none, or if the driver refuses it, of which `log` is told.
  /// The context is current.
  static Result<CodeModule> loadCuda(const Driver &driver,
                                     const Package &package, int major,
                                     int minor, const LogSink &log);
  /// Maps the kernels for this CPU.
  static Result<CodeModule> loadEmulated(const Driver &driver,
                                         const Package &package);

  std::span<const Kernel> kernels() const { return functions; }

private:
  friend class CudaLoader;

  explicit CodeModule(const Driver &driver) : driver(&driver) {}

  const Driver *driver;
  std::optional<CodeImage> image; ///< of emulated kernels
  std::vector<ModuleHandle> modules;
  std::vector<Kernel> functions; ///< of each kernel of the package
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_CODEMODULE_H
