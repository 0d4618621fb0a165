//===- EmulatedModule.h - Emulated kernels as a module ----------*- C++ -*-===//
//
// What the simulated driver takes in the place of a cubin.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_EMULATEDMODULE_H
#define TCC_RUNTIME_DEVICES_EMULATED_EMULATEDMODULE_H

#include <cstddef>

namespace tcc::emulated {

/// A kernel and what its parameters are: all have eight bytes.
struct ModuleKernel {
  const char *name;
  const void *function; ///< an EmulatedKernel
  size_t addresses;     ///< parameters that are addresses, which come first
  size_t parameters;    ///< in all
};

/// Its kernels and names outlive the module that is loaded from it.
struct EmulatedModule {
  const ModuleKernel *kernels;
  size_t count;
};

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_EMULATEDMODULE_H
