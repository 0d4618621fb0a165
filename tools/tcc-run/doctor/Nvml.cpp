#include "tools/tcc-run/doctor/Nvml.h"

#include <dlfcn.h>
#include <mutex>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

static constexpr char kLibrary[] = "libnvidia-ml.so.1";

namespace {

struct Row {
  const char *symbol;
  void *place;                     ///< of the pointer in the table
  const char *olderName = nullptr; ///< of the same function
};

} // namespace

/// Fills the table; returns the symbol that is missing, or null.
static const char *fill(Nvml &table, void *library) {
  const Row rows[] = {
      {"nvmlInit_v2", &table.init},
      {"nvmlErrorString", &table.errorString},
      {"nvmlDeviceGetCount_v2", &table.deviceGetCount},
      {"nvmlDeviceGetHandleByIndex_v2", &table.deviceGetHandleByIndex},
      {"nvmlDeviceGetName", &table.deviceGetName},
      {"nvmlDeviceGetPersistenceMode", &table.deviceGetPersistenceMode},
      {"nvmlDeviceGetEccMode", &table.deviceGetEccMode},
      {"nvmlDeviceGetTotalEccErrors", &table.deviceGetTotalEccErrors},
      {"nvmlDeviceGetClockInfo", &table.deviceGetClockInfo},
      {"nvmlDeviceGetMaxClockInfo", &table.deviceGetMaxClockInfo},
      // Drivers before 535 have the older name alone.
      {"nvmlDeviceGetCurrentClocksEventReasons",
       &table.deviceGetCurrentClocksEventReasons,
       "nvmlDeviceGetCurrentClocksThrottleReasons"},
      {"nvmlDeviceGetTemperature", &table.deviceGetTemperature},
      {"nvmlDeviceGetEnforcedPowerLimit", &table.deviceGetEnforcedPowerLimit},
      {"nvmlDeviceGetPowerManagementDefaultLimit",
       &table.deviceGetPowerManagementDefaultLimit},
      {"nvmlDeviceGetMemoryInfo", &table.deviceGetMemoryInfo},
      {"nvmlDeviceGetUtilizationRates", &table.deviceGetUtilizationRates},
      {"nvmlDeviceGetComputeMode", &table.deviceGetComputeMode},
      {"nvmlDeviceGetCurrPcieLinkWidth", &table.deviceGetCurrPcieLinkWidth},
      {"nvmlDeviceGetMaxPcieLinkWidth", &table.deviceGetMaxPcieLinkWidth},
  };
  for (const Row &row : rows) {
    void *address = dlsym(library, row.symbol);
    if (!address && row.olderName)
      address = dlsym(library, row.olderName);
    if (!address)
      return row.symbol;
    *static_cast<void **>(row.place) = address;
  }
  return nullptr;
}

Status doctor::loadNvml(Nvml &table, const char *library) {
  void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (!handle)
    return makeError(Code::Device, "there is no NVML: ", dlerror());
  if (const char *missing = fill(table, handle))
    return makeError(Code::Device, "'", library, "' has no ", missing);
  return Status();
}

Result<const Nvml *> doctor::findNvml() {
  static std::mutex mutex;
  static Nvml table;
  static bool isOpen = false;
  std::lock_guard lock(mutex);
  if (isOpen)
    return &table;
  if (Status status = loadNvml(table, kLibrary); !status.ok())
    return status;
  if (NvmlError error = table.init(); error != kNvmlSuccess)
    return makeError(Code::Device, "starting NVML: ", table.errorString(error));
  isOpen = true;
  return &table;
}
