//===- CudaDevice.h - Runs kernels through a CUDA driver --------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
#define TCC_RUNTIME_DEVICES_CUDA_CUDADEVICE_H

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/CodeModule.h"
#include "runtime/devices/cuda/DescribeLaunch.h"
#include "runtime/devices/cuda/OpenLibrary.h"

#include <mutex>

namespace tcc::runtime::cuda {

/// Makes a device that of the calling thread's calls; in the end the one that
/// the caller had is it again.
class Activation {
public:
  Activation(Activation &&other) noexcept
      : driver(std::exchange(other.driver, nullptr)) {}
  ~Activation();

  static Result<Activation> begin(const Driver &driver, ContextHandle context);

private:
  explicit Activation(const Driver &driver) : driver(&driver) {}

  const Driver *driver;
};

/// A device of the machine with a package's kernels, or the emulated one.
class CudaDevice final : public Device {
public:
  /// `driver` lives for ever.
  static Result<std::unique_ptr<CudaDevice>>
  open(const Driver &driver, const Choice &choice, const Package &package,
       Tunings tunings, const LogSink &log);
  ~CudaDevice() override;

  std::string_view name() const override { return label; }
  std::string_view library() const override {
    return opened.library ? opened.library->name() : std::string_view();
  }
  std::string_view note() const override { return opened.note; }
  int ordinal() const override { return number; }
  bool isEmulated() const { return emulated; }
  Allocator allocator(const Allocator &host) override;
  Allocator staging(const Allocator &host) override;
  Result<std::unique_ptr<Stream>>
  createStream(std::span<const EntryPlan> entries,
               const StreamOptions &options) override;
  Status write(void *to, const void *from, size_t bytes) override;
  Status read(void *to, const void *from, size_t bytes) override;
  Status clear(void *at, size_t bytes) override;

  const Driver &driver() const { return *table; }
  DeviceHandle handle() const { return device; }
  const CodeModule &code() const { return *module; }
  const format::Program &program() const { return *loaded; }
  /// What has kernels, too; null if there is none, or nothing for it to do. Its
  /// user holds `libraryMutex`: streams of several threads share it.
  Library *libraries() const { return opened.library.get(); }
  std::mutex &libraryMutex() { return libraryUse; }
  /// The libraries' fastest ways, as far as they are known.
  const Tunings &tunings() const { return fastest; }
  /// What Tunings call a work with so much workspace on this device.
  std::string nameWork(const LibraryWork &work, size_t workspaceBytes) const;
  /// Stands around all calls of the driver that need a context.
  Result<Activation> activate() const {
    return Activation::begin(*table, context);
  }
  Status check(Error error, std::string_view doing) const {
    return cuda::check(*table, error, doing);
  }

private:
  CudaDevice(const Driver &driver, const Choice &choice, std::string label)
      : table(&driver), number(choice.ordinal), emulated(choice.isEmulated),
        label(std::move(label)) {}

  Status retain(const Choice &choice, int &major, int &minor);
  Status createTransfers();
  Status writePieces(Address to, const std::byte *from, size_t bytes);

  const Driver *table;
  int number;
  bool emulated;
  std::string label;
  DeviceHandle device = 0;
  ContextHandle context = nullptr;
  std::optional<CodeModule> module;
  const format::Program *loaded = nullptr;
  std::string model; ///< as the driver names the device
  OpenedLibrary opened;
  std::mutex libraryUse;
  Tunings fastest;

  std::mutex transfers; ///< one at a time
  StreamHandle stream = nullptr;
  Memory pieces[2];           ///< pinned
  EventHandle copied[2] = {}; ///< the last copy from each piece is done
};

inline Address addressOf(const void *address) {
  return reinterpret_cast<Address>(address);
}

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
