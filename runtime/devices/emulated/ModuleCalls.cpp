// Modules and launches of the simulated driver.

#include "runtime/devices/emulated/DriverCalls.h"
#include "runtime/devices/emulated/EmulatedModule.h"

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

namespace {

Error moduleLoadDataEx(ModuleHandle *module, const void *image, unsigned, int *,
                       void **) {
  return call([&] {
    const auto &source = *static_cast<const EmulatedModule *>(image);
    *module = new ModuleObject;
    for (size_t i = 0; i < source.count; ++i) {
      const ModuleKernel &kernel = source.kernels[i];
      (*module)->functions.push_back({kernel.name,
                                      reinterpret_cast<EmulatedKernel>(
                                          const_cast<void *>(kernel.function)),
                                      kernel.addresses, kernel.parameters});
    }
    return Status();
  });
}

Error moduleUnload(ModuleHandle module) {
  return call(
      [&] {
        delete module;
        return Status();
      },
      kRelease);
}

Error moduleGetFunction(FunctionHandle *function, ModuleHandle module,
                        const char *name) {
  std::lock_guard lock(getState().mutex);
  for (Function &one : module->functions)
    if (one.name == name && one.kernel) {
      *function = toHandle<FunctionHandle>(&one);
      return kSuccess;
    }
  return kInvalidValue;
}

/// Kernels declare all their shared memory.
Error funcSetAttribute(FunctionHandle, int, int) { return kInvalidValue; }

Error launchKernel(FunctionHandle handle, unsigned gridX, unsigned gridY,
                   unsigned gridZ, unsigned blockX, unsigned blockY,
                   unsigned blockZ, unsigned sharedBytes, StreamHandle stream,
                   void **parameters, void **extra) {
  return call([&]() -> Status {
    const Function &function = as<Function>(handle);
    if (gridX == 0 || blockX == 0 || blockX > 1024 || gridY * gridZ != 1 ||
        blockY * blockZ != 1 || sharedBytes != 0 || extra)
      return makeError(Code::Device, "a launch of kernel '", function.name,
                       "' with ", gridX, " blocks of ", blockX, " threads");
    Operation operation{Operation::Launch};
    operation.microseconds = kKernelMicroseconds;
    operation.function = &function;
    operation.blocks = gridX;
    operation.threads = blockX;
    for (size_t i = 0; i < function.parameters; ++i)
      operation.parameters.push_back(
          *static_cast<const uint64_t *>(parameters[i]));
    return simulator().enqueue(streamOf(stream), std::move(operation));
  });
}

} // namespace

void emulated::addModuleCalls(Driver &driver) {
  driver.moduleLoadDataEx = moduleLoadDataEx;
  driver.moduleUnload = moduleUnload;
  driver.moduleGetFunction = moduleGetFunction;
  driver.funcSetAttribute = funcSetAttribute;
  driver.launchKernel = launchKernel;
}
