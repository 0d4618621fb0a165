// Nvml.h against the header that it is declared after.

#include "tools/tcc-run/doctor/Nvml.h"
#include "gtest/gtest.h"

#if __has_include(<nvml.h>)
#include <cstddef>
#include <nvml.h>
#include <type_traits>
#endif

using namespace tcc::tools::doctor;

#if __has_include(<nvml.h>)
// Drivers keep what the header advises against.
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

/// An argument as it is passed: enumerations as their numbers, pointers as
/// what they point to has the same size.
template <typename Ours, typename Theirs> constexpr bool isPassedAlike() {
  if constexpr (std::is_pointer_v<Ours> && std::is_pointer_v<Theirs>) {
    using To = std::remove_pointer_t<Ours>;
    using From = std::remove_pointer_t<Theirs>;
    if constexpr (std::is_class_v<To> && !requires { sizeof(To); })
      return true; // handles
    else
      return sizeof(To) == sizeof(From);
  } else {
    return sizeof(Ours) == sizeof(Theirs) &&
           std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
  }
}

template <typename OurResult, typename... Ours, typename TheirResult,
          typename... Theirs>
constexpr bool isCalledAlike(OurResult (*)(Ours...),
                             TheirResult (*)(Theirs...)) {
  if constexpr (sizeof...(Ours) != sizeof...(Theirs))
    return false;
  else
    return sizeof(OurResult) == sizeof(TheirResult) &&
           (isPassedAlike<Ours, Theirs>() && ...);
}

#define ALIKE(MEMBER, THEIRS)                                                  \
  static_assert(isCalledAlike(decltype(Nvml::MEMBER)(nullptr),                 \
                              decltype (&THEIRS)(nullptr)))
#define SAME(OURS, THEIRS) static_assert((unsigned long long)(OURS) == (THEIRS))
#endif

TEST(DoctorNvml, IsThatOfTheHeader) {
#if !__has_include(<nvml.h>)
  GTEST_SKIP() << "not available: nvml.h";
#else
  ALIKE(init, nvmlInit_v2);
  ALIKE(errorString, nvmlErrorString);
  ALIKE(deviceGetCount, nvmlDeviceGetCount_v2);
  ALIKE(deviceGetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);
  ALIKE(deviceGetName, nvmlDeviceGetName);
  ALIKE(deviceGetPersistenceMode, nvmlDeviceGetPersistenceMode);
  ALIKE(deviceGetEccMode, nvmlDeviceGetEccMode);
  ALIKE(deviceGetTotalEccErrors, nvmlDeviceGetTotalEccErrors);
  ALIKE(deviceGetClockInfo, nvmlDeviceGetClockInfo);
  ALIKE(deviceGetMaxClockInfo, nvmlDeviceGetMaxClockInfo);
  ALIKE(deviceGetCurrentClocksEventReasons,
        nvmlDeviceGetCurrentClocksEventReasons);
  ALIKE(deviceGetTemperature, nvmlDeviceGetTemperature);
  ALIKE(deviceGetEnforcedPowerLimit, nvmlDeviceGetEnforcedPowerLimit);
  ALIKE(deviceGetPowerManagementDefaultLimit,
        nvmlDeviceGetPowerManagementDefaultLimit);
  ALIKE(deviceGetMemoryInfo, nvmlDeviceGetMemoryInfo);
  ALIKE(deviceGetUtilizationRates, nvmlDeviceGetUtilizationRates);
  ALIKE(deviceGetComputeMode, nvmlDeviceGetComputeMode);
  ALIKE(deviceGetCurrPcieLinkWidth, nvmlDeviceGetCurrPcieLinkWidth);
  ALIKE(deviceGetMaxPcieLinkWidth, nvmlDeviceGetMaxPcieLinkWidth);
  static_assert(offsetof(NvmlMemory, used) == offsetof(nvmlMemory_t, used));
  static_assert(offsetof(NvmlMemory, total) == offsetof(nvmlMemory_t, total));
  static_assert(offsetof(NvmlUse, gpu) == offsetof(nvmlUtilization_t, gpu));
  SAME(kNvmlSuccess, NVML_SUCCESS);
  SAME(kNvmlNotSupported, NVML_ERROR_NOT_SUPPORTED);
  SAME(kNvmlEnabled, NVML_FEATURE_ENABLED);
  SAME(kNvmlSmClock, NVML_CLOCK_SM);
  SAME(kNvmlDieTemperature, NVML_TEMPERATURE_GPU);
  SAME(kNvmlUncorrected, NVML_MEMORY_ERROR_TYPE_UNCORRECTED);
  SAME(kNvmlSinceDriver, NVML_VOLATILE_ECC);
  SAME(kNvmlComputeProhibited, NVML_COMPUTEMODE_PROHIBITED);
  SAME(kNvmlComputeExclusive, NVML_COMPUTEMODE_EXCLUSIVE_PROCESS);
  SAME(kNvmlUserClocks, nvmlClocksEventReasonApplicationsClocksSetting);
  SAME(kNvmlPowerCap, nvmlClocksEventReasonSwPowerCap);
  SAME(kNvmlHardwareSlowdown, nvmlClocksThrottleReasonHwSlowdown);
  SAME(kNvmlSoftwareThermal, nvmlClocksEventReasonSwThermalSlowdown);
  SAME(kNvmlHardwareThermal, nvmlClocksThrottleReasonHwThermalSlowdown);
  SAME(kNvmlPowerBrake, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
#endif
}
