//===- CpuDevice.h - Runs kernels on threads of the host --------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CPU_CPUDEVICE_H
#define TCC_RUNTIME_DEVICES_CPU_CPUDEVICE_H

#include "runtime/devices/Device.h"
#include "runtime/package/Format.h"

namespace tcc::runtime {

/// Everything is done when a call returns.
class CpuDevice final : public Device {
public:
  /// `kernels` are indexed as Program.kernels and outlive the device.
  explicit CpuDevice(std::span<const format::KernelFunction> kernels)
      : kernels(kernels) {}

  std::string_view name() const override { return "cpu"; }
  int ordinal() const override { return -1; }
  Allocator allocator(const Allocator &host) override { return host; }
  Allocator staging(const Allocator &host) override { return host; }
  Result<std::unique_ptr<Stream>>
  createStream(std::span<const EntryPlan> entries,
               const StreamOptions &options) override;
  Status write(void *to, const void *from, size_t bytes) override;
  Status read(void *to, const void *from, size_t bytes) override;
  Status clear(void *at, size_t bytes) override;

private:
  std::span<const format::KernelFunction> kernels;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_CPU_CPUDEVICE_H
