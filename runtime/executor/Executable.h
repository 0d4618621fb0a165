//===- Executable.h - A package ready to run --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_EXECUTOR_EXECUTABLE_H
#define TCC_RUNTIME_EXECUTOR_EXECUTABLE_H

#include "runtime/base/Log.h"
#include "runtime/base/Memory.h"
#include "runtime/devices/Device.h"
#include "runtime/package/Image.h"
#include "runtime/package/Names.h"
#include "runtime/package/Reader.h"

#include <optional>

namespace tcc::runtime {

struct ExecutableOptions {
  /// "cpu", "cuda", "cuda:1", ...; empty for what the package is compiled for.
  std::string device;
  /// Which rank of this machine the process is: the number of the device, where
  /// its name has none. Code::Usage if there are fewer.
  int localRank = 0;
  /// A safetensors file with tensors of the model, by their model names, that
  /// replace the package's; empty to take the package's values.
  std::string weightsFile;
  /// What `tcc-run tune` wrote of libraries' ways and kernels' plans; empty:
  /// libraries choose, and kernels have their own.
  std::string tuneCache;
  /// Threads that recompute constants from replaced tensors.
  int threads = 1;
  Allocator allocator = systemAllocator();
  LogSink log;
};

/// Code and constants on a device. Immutable; shared by threads.
class Executable {
public:
  static Result<std::shared_ptr<const Executable>>
  load(std::shared_ptr<const Package> package,
       const ExecutableOptions &options = {});

  const Package &package() const { return *source; }
  const format::Program &program() const { return source->program(); }
  /// The code that was chosen for this CPU; requires kernels.
  const format::Variant &variant() const { return *chosen; }
  /// Null if there is no such entry point.
  const format::Entry *findEntry(format::EntryKind kind,
                                 uint16_t variant = 0) const;
  /// Kernels for this CPU; empty for a device, unless it prepared constants.
  std::span<const format::KernelFunction> kernels() const { return functions; }
  /// Where its entries but `prepare` run.
  Device &device() const { return *runsOn; }
  /// The bytes of ConstTensor `index`, in memory of the device.
  const std::byte *constant(uint32_t index) const { return constants[index]; }
  /// Bytes of the constants that `entries` read, each as alignTensor has it.
  uint64_t constantBytes(std::span<const format::Entry *const> entries) const;

private:
  explicit Executable(std::shared_ptr<const Package> package)
      : source(std::move(package)) {}

  Status chooseDevice(const ExecutableOptions &options);
  Status chooseVariant();
  Status mapCode();
  bool isForDevice() const;
  void reportDevice(const LogSink &log) const;
  Status bindConstants(const ExecutableOptions &options);
  Status uploadConstants(const Allocator &host);

  std::shared_ptr<const Package> source;
  const format::Variant *chosen = nullptr;
  std::optional<CodeImage> image;
  std::vector<format::KernelFunction> functions;
  std::vector<const std::byte *> constants;
  std::vector<Memory> replaced; ///< constants that are not the package's
  std::unique_ptr<Device> runsOn;
  Memory uploaded; ///< constants on a device
};

/// The functions of a variant's kernels in an image, null for those that it has
/// not; an error if one lies outside the code.
Result<std::vector<format::KernelFunction>>
kernelsOf(const format::Program &program, const format::Variant &variant,
          const CodeImage &image);

const format::Entry *findEntry(const format::Program &program,
                               format::EntryKind kind, uint16_t variant = 0);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_EXECUTOR_EXECUTABLE_H
