//===- Driver.h - The CUDA driver API as a table ----------------*- C++ -*-===//
//
// The few entry points of libcuda that the runtime calls, declared here so that
// no header of CUDA is needed to build it. The table is filled from the driver
// of the machine, or is that of a simulated device.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_DRIVER_H
#define TCC_RUNTIME_DEVICES_CUDA_DRIVER_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace tcc::runtime::cuda {

/// CUresult; the values that are told apart.
using Error = int;
inline constexpr Error kSuccess = 0;
inline constexpr Error kInvalidValue = 1;
inline constexpr Error kOutOfMemory = 2;
inline constexpr Error kNoDevice = 100;

using DeviceHandle = int;
using Address = unsigned long long; ///< CUdeviceptr
using ContextHandle = struct ContextObject *;
using ModuleHandle = struct ModuleObject *;
using FunctionHandle = struct FunctionObject *;
using StreamHandle = struct StreamObject *;
using EventHandle = struct EventObject *;
using GraphHandle = struct GraphObject *;
using GraphExecHandle = struct GraphExecObject *;

inline constexpr int kCacheBytes = 38; ///< CU_DEVICE_ATTRIBUTE_..., of L2
inline constexpr int kComputeMajor = 75;
inline constexpr int kComputeMinor = 76;
inline constexpr unsigned kNonBlocking = 1;    ///< CU_STREAM_NON_BLOCKING
inline constexpr unsigned kRecordExternal = 1; ///< CU_EVENT_RECORD_EXTERNAL
inline constexpr unsigned kNoTiming = 2;       ///< CU_EVENT_DISABLE_TIMING
inline constexpr int kCaptureThreadLocal = 1;  ///< CU_STREAM_CAPTURE_MODE_...
inline constexpr int kJitErrorLog = 5;         ///< CU_JIT_ERROR_LOG_BUFFER
inline constexpr int kJitErrorLogBytes = 6;    ///< ..._SIZE_BYTES
inline constexpr int kMaxDynamicShared = 8;    ///< CU_FUNC_ATTRIBUTE_...

/// Each member is the entry point cuNAME, with the suffix that findDriver
/// lists. Any thread may call them.
struct Driver {
  Error (*init)(unsigned flags);
  Error (*driverGetVersion)(int *version);
  Error (*getErrorString)(Error error, const char **text);
  Error (*deviceGetCount)(int *count);
  Error (*deviceGet)(DeviceHandle *device, int ordinal);
  Error (*deviceGetName)(char *name, int length, DeviceHandle device);
  Error (*deviceGetAttribute)(int *value, int attribute, DeviceHandle device);
  Error (*deviceTotalMem)(size_t *bytes, DeviceHandle device);
  Error (*devicePrimaryCtxRetain)(ContextHandle *context, DeviceHandle device);
  Error (*devicePrimaryCtxRelease)(DeviceHandle device);
  Error (*ctxPushCurrent)(ContextHandle context);
  Error (*ctxPopCurrent)(ContextHandle *context);
  Error (*memGetInfo)(size_t *free, size_t *total);
  Error (*memAlloc)(Address *address, size_t bytes);
  Error (*memFree)(Address address);
  Error (*memHostAlloc)(void **address, size_t bytes, unsigned flags);
  Error (*memFreeHost)(void *address);
  Error (*memcpyHtoDAsync)(Address to, const void *from, size_t bytes,
                           StreamHandle stream);
  Error (*memcpyDtoHAsync)(void *to, Address from, size_t bytes,
                           StreamHandle stream);
  Error (*memcpyDtoDAsync)(Address to, Address from, size_t bytes,
                           StreamHandle stream);
  Error (*memsetD8Async)(Address to, unsigned char value, size_t bytes,
                         StreamHandle stream);
  Error (*streamCreate)(StreamHandle *stream, unsigned flags);
  Error (*streamDestroy)(StreamHandle stream);
  Error (*streamSynchronize)(StreamHandle stream);
  Error (*streamWaitEvent)(StreamHandle stream, EventHandle event,
                           unsigned flags);
  Error (*streamBeginCapture)(StreamHandle stream, int mode);
  Error (*streamEndCapture)(StreamHandle stream, GraphHandle *graph);
  Error (*eventCreate)(EventHandle *event, unsigned flags);
  Error (*eventDestroy)(EventHandle event);
  Error (*eventRecord)(EventHandle event, StreamHandle stream);
  Error (*eventRecordWithFlags)(EventHandle event, StreamHandle stream,
                                unsigned flags);
  Error (*eventSynchronize)(EventHandle event);
  Error (*eventElapsedTime)(float *milliseconds, EventHandle start,
                            EventHandle end);
  Error (*moduleLoadDataEx)(ModuleHandle *module, const void *image,
                            unsigned options, int *keys, void **values);
  Error (*moduleUnload)(ModuleHandle module);
  Error (*moduleGetFunction)(FunctionHandle *function, ModuleHandle module,
                             const char *name);
  Error (*funcSetAttribute)(FunctionHandle function, int attribute, int value);
  Error (*launchKernel)(FunctionHandle function, unsigned gridX, unsigned gridY,
                        unsigned gridZ, unsigned blockX, unsigned blockY,
                        unsigned blockZ, unsigned sharedBytes,
                        StreamHandle stream, void **parameters, void **extra);
  Error (*graphInstantiateWithFlags)(GraphExecHandle *exec, GraphHandle graph,
                                     unsigned long long flags);
  Error (*graphDestroy)(GraphHandle graph);
  Error (*graphExecDestroy)(GraphExecHandle exec);
  Error (*graphLaunch)(GraphExecHandle exec, StreamHandle stream);
};

/// The driver of this machine, ready to use; opened once and kept. An error
/// (Code::Device) says in one line what is missing.
Result<const Driver *> findDriver();

/// What a device is, as a tool prints it.
struct DeviceDescription {
  std::string name;
  int major = 0, minor = 0; ///< of its compute capability
  size_t bytes = 0;         ///< of its memory
};
Result<std::vector<DeviceDescription>> listDevices(const Driver &driver);

/// Success, or an error of a call of the driver that says what was `doing`.
Status check(const Driver &driver, Error error, std::string_view doing);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_DRIVER_H
