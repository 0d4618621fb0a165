//===- CpuDevice.h - Runs kernels on threads of the host --------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CPU_CPUDEVICE_H
#define TCC_RUNTIME_DEVICES_CPU_CPUDEVICE_H

#include "runtime/devices/Device.h"
#include "runtime/package/Format.h"
#include "runtime/package/Program_generated.h"

namespace tcc::runtime {

/// Everything is done when a call returns.
class CpuDevice final : public Device {
public:
  /// `kernels` are indexed as Program.kernels and outlive the device. Those
  /// with candidates are only launched if there is `program`, which outlives
  /// it, too: of these the one that `tunings` know to be the fastest on the CPU
  /// `name`.
  explicit CpuDevice(std::span<const format::KernelFunction> kernels,
                     const format::Program *program = nullptr,
                     Tunings tunings = {}, std::string name = {})
      : kernels(kernels), program(program), fastest(std::move(tunings)),
        cpuName(std::move(name)) {}

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
  const format::Program *program;
  Tunings fastest;
  std::string cpuName;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DEVICES_CPU_CPUDEVICE_H
