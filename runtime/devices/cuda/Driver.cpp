#include "runtime/devices/cuda/Driver.h"

#include <dlfcn.h>
#include <mutex>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr char kLibrary[] = "libcuda.so.1";

namespace {

struct Row {
  const char *symbol;
  void *place; ///< of the pointer in the table
};

} // namespace

/// Fills the table; returns the symbol that is missing, or null.
static const char *fill(Driver &driver, void *library) {
  const Row rows[] = {
      {"cuInit", &driver.init},
      {"cuDriverGetVersion", &driver.driverGetVersion},
      {"cuGetErrorString", &driver.getErrorString},
      {"cuDeviceGetCount", &driver.deviceGetCount},
      {"cuDeviceGet", &driver.deviceGet},
      {"cuDeviceGetName", &driver.deviceGetName},
      {"cuDeviceGetAttribute", &driver.deviceGetAttribute},
      {"cuDeviceTotalMem_v2", &driver.deviceTotalMem},
      {"cuDevicePrimaryCtxRetain", &driver.devicePrimaryCtxRetain},
      {"cuDevicePrimaryCtxRelease_v2", &driver.devicePrimaryCtxRelease},
      {"cuCtxPushCurrent_v2", &driver.ctxPushCurrent},
      {"cuCtxPopCurrent_v2", &driver.ctxPopCurrent},
      {"cuMemGetInfo_v2", &driver.memGetInfo},
      {"cuMemAlloc_v2", &driver.memAlloc},
      {"cuMemFree_v2", &driver.memFree},
      {"cuMemHostAlloc", &driver.memHostAlloc},
      {"cuMemFreeHost", &driver.memFreeHost},
      {"cuMemcpyHtoDAsync_v2", &driver.memcpyHtoDAsync},
      {"cuMemcpyDtoHAsync_v2", &driver.memcpyDtoHAsync},
      {"cuMemcpyDtoDAsync_v2", &driver.memcpyDtoDAsync},
      {"cuMemsetD8Async", &driver.memsetD8Async},
      {"cuStreamCreate", &driver.streamCreate},
      {"cuStreamDestroy_v2", &driver.streamDestroy},
      {"cuStreamSynchronize", &driver.streamSynchronize},
      {"cuStreamWaitEvent", &driver.streamWaitEvent},
      {"cuStreamBeginCapture_v2", &driver.streamBeginCapture},
      {"cuStreamEndCapture", &driver.streamEndCapture},
      {"cuEventCreate", &driver.eventCreate},
      {"cuEventDestroy_v2", &driver.eventDestroy},
      {"cuEventRecord", &driver.eventRecord},
      {"cuEventRecordWithFlags", &driver.eventRecordWithFlags},
      {"cuEventSynchronize", &driver.eventSynchronize},
      {"cuEventElapsedTime", &driver.eventElapsedTime},
      {"cuModuleLoadDataEx", &driver.moduleLoadDataEx},
      {"cuModuleUnload", &driver.moduleUnload},
      {"cuModuleGetFunction", &driver.moduleGetFunction},
      {"cuFuncSetAttribute", &driver.funcSetAttribute},
      {"cuLaunchKernel", &driver.launchKernel},
      {"cuGraphInstantiateWithFlags", &driver.graphInstantiateWithFlags},
      {"cuGraphDestroy", &driver.graphDestroy},
      {"cuGraphExecDestroy", &driver.graphExecDestroy},
      {"cuGraphLaunch", &driver.graphLaunch},
  };
  for (const Row &row : rows) {
    void *address = dlsym(library, row.symbol);
    if (!address)
      return row.symbol;
    *static_cast<void **>(row.place) = address;
  }
  return nullptr;
}

/// Never closed: a driver's library does not survive that.
static Status openDriver(Driver &driver) {
  void *library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library)
    return makeError(Code::Device, "there is no CUDA driver: ", dlerror());
  if (const char *missing = fill(driver, library))
    return makeError(Code::Device, "the CUDA driver is too old: it has no ",
                     missing);
  int devices = 0;
  if (Status status = check(driver, driver.init(0), "starting the CUDA driver");
      !status.ok())
    return status;
  if (Status status = check(driver, driver.deviceGetCount(&devices),
                            "counting CUDA devices");
      !status.ok())
    return status;
  return devices > 0 ? Status()
                     : Status(Code::Device, "the CUDA driver has no device");
}

Result<const Driver *> cuda::findDriver() {
  static std::mutex mutex;
  static Driver driver;
  static bool isOpen = false;
  std::lock_guard lock(mutex);
  if (isOpen)
    return &driver;
  if (Status status = openDriver(driver); !status.ok())
    return status;
  isOpen = true;
  return &driver;
}

Result<std::vector<DeviceDescription>> cuda::listDevices(const Driver &driver) {
  int count = 0;
  Error error = driver.deviceGetCount(&count);
  std::vector<DeviceDescription> devices;
  for (int i = 0; error == kSuccess && i < count; ++i) {
    DeviceDescription &added = devices.emplace_back();
    DeviceHandle device = 0;
    char name[256] = "";
    error = driver.deviceGet(&device, i);
    if (error == kSuccess)
      error = driver.deviceGetName(name, sizeof(name) - 1, device);
    if (error == kSuccess)
      error = driver.deviceGetAttribute(&added.major, kComputeMajor, device);
    if (error == kSuccess)
      error = driver.deviceGetAttribute(&added.minor, kComputeMinor, device);
    if (error == kSuccess)
      error = driver.deviceTotalMem(&added.bytes, device);
    added.name = name;
  }
  if (Status status = check(driver, error, "listing CUDA devices");
      !status.ok())
    return status;
  return devices;
}

Status cuda::check(const Driver &driver, Error error, std::string_view doing) {
  if (error == kSuccess)
    return Status();
  const char *text = nullptr;
  if (driver.getErrorString(error, &text) != kSuccess || !text)
    text = "an unknown error";
  return makeError(error == kOutOfMemory ? Code::OutOfMemory : Code::Device,
                   doing, ": ", text, " (CUDA error ", error, ")");
}
