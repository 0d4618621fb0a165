//===- DriverCalls.h - What calls of the simulated driver share -*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_EMULATED_DRIVERCALLS_H
#define TCC_RUNTIME_DEVICES_EMULATED_DRIVERCALLS_H

#include "runtime/devices/cuda/Driver.h"
#include "runtime/devices/emulated/Simulator.h"

#include <mutex>

// Handles are pointers to objects of the simulator, or to these.
struct tcc::runtime::cuda::ContextObject {
  tcc::emulated::Schedule schedule;
  int users = 0;
  std::unique_ptr<tcc::emulated::Stream> legacy; ///< made when it is used
};
struct tcc::runtime::cuda::ModuleObject {
  std::deque<tcc::emulated::Function> functions;
};

namespace tcc::emulated {

/// What a context does not recover from (CUDA_ERROR_LAUNCH_FAILED).
inline constexpr runtime::cuda::Error kLaunchFailed = 719;

/// The state of all contexts. The mutex is held while one is used.
struct DriverState {
  std::recursive_mutex mutex;
  Simulator simulator;
  std::map<int, runtime::cuda::ContextObject> contexts; ///< by device
  std::string failure; ///< text of kLaunchFailed; empty if nothing failed
};
DriverState &getState();
inline Simulator &simulator() { return getState().simulator; }
/// The current context of the calling thread; null if there is none.
runtime::cuda::ContextHandle getCurrentContext();

template <typename Object, typename Handle> Object &as(Handle handle) {
  return *reinterpret_cast<Object *>(handle);
}
template <typename Handle, typename Object> Handle toHandle(Object *object) {
  return reinterpret_cast<Handle>(object);
}

/// The legacy stream of the current context for null; streams of the simulator
/// never wait for it by themselves.
Stream &streamOf(runtime::cuda::StreamHandle handle);

/// For calls that release something, also after a failure.
inline constexpr bool kRelease = true;

/// Runs `body`, which returns a Status, unless a call failed before.
template <typename Body>
runtime::cuda::Error call(Body body, bool isRelease = false) {
  DriverState &state = getState();
  std::lock_guard lock(state.mutex);
  if (!state.failure.empty() && !isRelease)
    return kLaunchFailed;
  if (!getCurrentContext()) {
    state.failure = "a call of a thread without a context";
    return kLaunchFailed;
  }
  runtime::Status status = body();
  if (status.ok())
    return runtime::cuda::kSuccess;
  state.failure = status.message();
  return kLaunchFailed;
}

void addMemoryCalls(runtime::cuda::Driver &driver);
void addStreamCalls(runtime::cuda::Driver &driver);
void addModuleCalls(runtime::cuda::Driver &driver);

} // namespace tcc::emulated

#endif // TCC_RUNTIME_DEVICES_EMULATED_DRIVERCALLS_H
