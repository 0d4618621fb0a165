// A library with NVML's names; with TCC_OLD_NVML as drivers before 535 have it.

#include "tools/tcc-run/doctor/Nvml.h"

#define STUB(NAME)                                                             \
  extern "C" int NAME() { return 0; }

STUB(nvmlInit_v2)
STUB(nvmlErrorString)
STUB(nvmlDeviceGetCount_v2)
STUB(nvmlDeviceGetHandleByIndex_v2)
STUB(nvmlDeviceGetName)
STUB(nvmlDeviceGetPersistenceMode)
STUB(nvmlDeviceGetEccMode)
STUB(nvmlDeviceGetTotalEccErrors)
STUB(nvmlDeviceGetClockInfo)
STUB(nvmlDeviceGetMaxClockInfo)
STUB(nvmlDeviceGetTemperature)
STUB(nvmlDeviceGetEnforcedPowerLimit)
STUB(nvmlDeviceGetPowerManagementDefaultLimit)
STUB(nvmlDeviceGetMemoryInfo)
STUB(nvmlDeviceGetUtilizationRates)
STUB(nvmlDeviceGetComputeMode)
STUB(nvmlDeviceGetCurrPcieLinkWidth)
STUB(nvmlDeviceGetMaxPcieLinkWidth)

#ifdef TCC_OLD_NVML
#define REASONS nvmlDeviceGetCurrentClocksThrottleReasons
#else
#define REASONS nvmlDeviceGetCurrentClocksEventReasons
#endif

extern "C" int REASONS(tcc::tools::doctor::NvmlDevice,
                       unsigned long long *reasons) {
  *reasons = 0x4;
  return 0;
}
