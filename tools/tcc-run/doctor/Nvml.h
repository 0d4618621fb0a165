//===- Nvml.h - NVIDIA's management library as a table ----------*- C++ -*-===//
//
// The few entry points of libnvidia-ml that are called, and the values that
// they take, after nvml.h, which is not needed to build it: NvmlTest compares
// both where there is one. The table is filled from the machine's library, or
// is a test's.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_NVML_H
#define TCC_TOOLS_TCCRUN_DOCTOR_NVML_H

#include "runtime/base/Status.h"

namespace tcc::tools::doctor {

using NvmlError = int; ///< nvmlReturn_t
inline constexpr NvmlError kNvmlSuccess = 0;
inline constexpr NvmlError kNvmlNotSupported = 3; ///< by this GPU

using NvmlDevice = struct NvmlDeviceObject *; ///< nvmlDevice_t

// Values of its enumerations.
inline constexpr int kNvmlEnabled = 1;           ///< NVML_FEATURE_ENABLED
inline constexpr int kNvmlSmClock = 1;           ///< NVML_CLOCK_SM
inline constexpr int kNvmlDieTemperature = 0;    ///< NVML_TEMPERATURE_GPU
inline constexpr int kNvmlUncorrected = 1;       ///< ..._ERROR_TYPE_UNCORRECTED
inline constexpr int kNvmlSinceDriver = 0;       ///< NVML_VOLATILE_ECC
inline constexpr int kNvmlComputeProhibited = 2; ///< NVML_COMPUTEMODE_...
inline constexpr int kNvmlComputeExclusive = 3;  ///< ..._EXCLUSIVE_PROCESS

// Why clocks are lower than they might be: bits.
inline constexpr unsigned long long kNvmlUserClocks = 0x2;
inline constexpr unsigned long long kNvmlPowerCap = 0x4;
inline constexpr unsigned long long kNvmlHardwareSlowdown = 0x8;
inline constexpr unsigned long long kNvmlSoftwareThermal = 0x20;
inline constexpr unsigned long long kNvmlHardwareThermal = 0x40;
inline constexpr unsigned long long kNvmlPowerBrake = 0x80;

struct NvmlMemory { ///< nvmlMemory_t
  unsigned long long total, free, used;
};
struct NvmlUse { ///< nvmlUtilization_t
  unsigned gpu, memory;
};

/// Each member is the entry point nvmlNAME, with the suffix that findNvml
/// lists. Clocks are in MHz, power in milliwatts.
struct Nvml {
  NvmlError (*init)();
  const char *(*errorString)(NvmlError error);
  NvmlError (*deviceGetCount)(unsigned *count);
  NvmlError (*deviceGetHandleByIndex)(unsigned index, NvmlDevice *device);
  NvmlError (*deviceGetName)(NvmlDevice device, char *name, unsigned length);
  NvmlError (*deviceGetPersistenceMode)(NvmlDevice device, int *isEnabled);
  NvmlError (*deviceGetEccMode)(NvmlDevice device, int *current, int *pending);
  NvmlError (*deviceGetTotalEccErrors)(NvmlDevice device, int type, int since,
                                       unsigned long long *count);
  NvmlError (*deviceGetClockInfo)(NvmlDevice device, int type, unsigned *clock);
  NvmlError (*deviceGetMaxClockInfo)(NvmlDevice device, int type,
                                     unsigned *clock);
  NvmlError (*deviceGetCurrentClocksEventReasons)(NvmlDevice device,
                                                  unsigned long long *reasons);
  NvmlError (*deviceGetTemperature)(NvmlDevice device, int sensor,
                                    unsigned *celsius);
  NvmlError (*deviceGetEnforcedPowerLimit)(NvmlDevice device, unsigned *limit);
  NvmlError (*deviceGetPowerManagementDefaultLimit)(NvmlDevice device,
                                                    unsigned *limit);
  NvmlError (*deviceGetMemoryInfo)(NvmlDevice device, NvmlMemory *memory);
  NvmlError (*deviceGetUtilizationRates)(NvmlDevice device, NvmlUse *use);
  NvmlError (*deviceGetComputeMode)(NvmlDevice device, int *mode);
  NvmlError (*deviceGetCurrPcieLinkWidth)(NvmlDevice device, unsigned *lanes);
  NvmlError (*deviceGetMaxPcieLinkWidth)(NvmlDevice device, unsigned *lanes);
};

/// The library of this machine, opened and started once, never closed. Any
/// thread may call.
runtime::Result<const Nvml *> findNvml();

/// Fills the table from a library of that name; Code::Device if there is none
/// or it lacks an entry point.
runtime::Status loadNvml(Nvml &table, const char *library);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_NVML_H
