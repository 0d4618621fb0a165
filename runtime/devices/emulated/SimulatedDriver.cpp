#include "runtime/devices/emulated/SimulatedDriver.h"

#include "runtime/devices/emulated/DriverCalls.h"

#include <cstdlib>
#include <cstring>

using namespace tcc;
using namespace tcc::emulated;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr int kDeviceCount = 1 << 30;
static constexpr int kDriverVersion = 13000;
static constexpr int kMajor = 9;
static constexpr int kCache = 4096; ///< bytes

/// The contexts of the calling thread; the last one is current.
static thread_local std::vector<ContextHandle> contexts;

DriverState &emulated::getState() {
  static DriverState state;
  return state;
}

ContextHandle emulated::getCurrentContext() {
  return contexts.empty() ? nullptr : contexts.back();
}

emulated::Stream &emulated::streamOf(StreamHandle handle) {
  if (handle)
    return as<Stream>(handle);
  ContextObject &context = *getCurrentContext();
  if (!context.legacy) {
    context.legacy = std::make_unique<Stream>(context.schedule);
    simulator().add(*context.legacy);
  }
  return *context.legacy;
}

namespace {

Error getErrorString(Error error, const char **text) {
  *text = error == kOutOfMemory    ? "out of memory"
          : error == kInvalidValue ? "invalid value"
                                   : getState().failure.c_str();
  return kSuccess;
}

Error devicePrimaryCtxRetain(ContextHandle *context, DeviceHandle device) {
  DriverState &state = getState();
  std::lock_guard lock(state.mutex);
  ContextObject &object = state.contexts[device];
  Schedule::Order order = device == 0   ? Schedule::Order::forward
                          : device == 1 ? Schedule::Order::reverse
                                        : Schedule::Order::random;
  object.schedule = {order, static_cast<uint64_t>(device)};
  ++object.users;
  *context = &object;
  return kSuccess;
}

/// With the last context its memory goes, and what failed in it.
Error devicePrimaryCtxRelease(DeviceHandle device) {
  DriverState &state = getState();
  std::lock_guard lock(state.mutex);
  auto found = state.contexts.find(device);
  if (found == state.contexts.end())
    return kInvalidValue;
  if (--found->second.users > 0)
    return kSuccess;
  if (found->second.legacy)
    state.simulator.remove(*found->second.legacy);
  state.contexts.erase(found);
  if (state.contexts.empty()) {
    state.simulator.memory.releaseAll();
    state.failure.clear();
  }
  return kSuccess;
}

Error ctxPushCurrent(ContextHandle context) {
  contexts.push_back(context);
  return kSuccess;
}

Error ctxPopCurrent(ContextHandle *context) {
  if (contexts.empty())
    return kInvalidValue;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}

Driver makeDriver() {
  Driver driver = {};
  driver.init = [](unsigned) { return kSuccess; };
  driver.driverGetVersion = [](int *version) {
    *version = kDriverVersion;
    return kSuccess;
  };
  driver.getErrorString = getErrorString;
  driver.deviceGetCount = [](int *count) {
    const char *given = std::getenv("TCC_EMULATED_GPUS"); // for tests
    *count = given ? std::atoi(given) : kDeviceCount;
    return kSuccess;
  };
  driver.deviceGet = [](DeviceHandle *device, int ordinal) {
    *device = ordinal;
    return ordinal >= 0 ? kSuccess : kInvalidValue;
  };
  driver.deviceGetName = [](char *name, int length, DeviceHandle) {
    std::strncpy(name, "emulated", length);
    return kSuccess;
  };
  driver.deviceGetAttribute = [](int *value, int attribute, DeviceHandle) {
    *value = attribute == kComputeMajor ? kMajor
             : attribute == kCacheBytes ? kCache
                                        : 0;
    return kSuccess;
  };
  driver.deviceTotalMem = [](size_t *bytes, DeviceHandle) {
    *bytes = DeviceMemory::totalBytes();
    return kSuccess;
  };
  driver.devicePrimaryCtxRetain = devicePrimaryCtxRetain;
  driver.devicePrimaryCtxRelease = devicePrimaryCtxRelease;
  driver.ctxPushCurrent = ctxPushCurrent;
  driver.ctxPopCurrent = ctxPopCurrent;
  addMemoryCalls(driver);
  addStreamCalls(driver);
  addModuleCalls(driver);
  return driver;
}

} // namespace

const Driver *tcc_emulated_driver() {
  static const Driver driver = makeDriver();
  return &driver;
}
