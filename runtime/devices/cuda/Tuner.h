//===- Tuner.h - Measures the ways of libraries -----------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_TUNER_H
#define TCC_RUNTIME_DEVICES_CUDA_TUNER_H

#include "runtime/devices/cuda/CudaDevice.h"
#include "runtime/devices/cuda/DescribeLaunch.h"

#include <functional>
#include <set>

namespace tcc::runtime::cuda {

/// Times ways to do a work on a stream, each several times with the device's
/// cache full of something else. What the work computes on is not kept.
class Tuner {
public:
  /// The context of the device is current here, and in all calls.
  static Result<std::unique_ptr<Tuner>>
  create(CudaDevice &device, StreamHandle stream,
         std::vector<Measurement> &measured);
  ~Tuner();

  /// Measures, unless that was done before, each way of the libraries that
  /// needs no more than the workspace, and `kernel`, which adds the package's
  /// own to the stream.
  Status tune(const LaunchDescription &launch, std::span<std::byte> workspace,
              const std::function<Status()> &kernel);

private:
  Tuner(CudaDevice &device, StreamHandle stream,
        std::vector<Measurement> &measured)
      : device(device), driver(device.driver()), stream(stream),
        measured(measured) {}

  Status measure(const std::string &work, int64_t way,
                 const std::function<Status()> &enqueue);

  CudaDevice &device;
  const Driver &driver;
  StreamHandle stream;
  std::vector<Measurement> &measured;
  std::set<std::string> done;
  EventHandle before = nullptr, after = nullptr;
  Memory cached; ///< what the cache is filled with
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_TUNER_H
