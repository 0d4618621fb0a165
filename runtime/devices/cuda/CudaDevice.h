//===- CudaDevice.h - Runs kernels through a CUDA driver --------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
#define TCC_RUNTIME_DEVICES_CUDA_CUDADEVICE_H

#include "runtime/devices/Device.h"
#include "runtime/devices/cuda/CodeModule.h"
#include "runtime/devices/cuda/OpenLibrary.h"

#include <mutex>

namespace tcc::runtime::cuda {

/// Memory of the host that the device copies from and to beside other work.
class PinnedMemory {
public:
  PinnedMemory() = default;
  PinnedMemory(PinnedMemory &&other) noexcept { *this = std::move(other); }
  PinnedMemory &operator=(PinnedMemory &&other) noexcept;
  ~PinnedMemory();

  static Result<PinnedMemory> allocate(const Driver &driver, size_t bytes);

  std::byte *data() const { return address; }
  size_t size() const { return bytes; }

private:
  const Driver *driver = nullptr;
  std::byte *address = nullptr;
  size_t bytes = 0;
};

/// A device of the machine with a package's kernels, or the emulated one.
class CudaDevice final : public Device {
public:
  /// `driver` lives for ever.
  static Result<std::unique_ptr<CudaDevice>>
  open(const Driver &driver, const Choice &choice, const Package &package);
  ~CudaDevice() override;

  std::string_view name() const override { return label; }
  std::string_view library() const override {
    return products.library ? products.library->name() : std::string_view();
  }
  std::string_view note() const override { return products.note; }
  int ordinal() const override { return number; }
  Allocator allocator(const Allocator &host) override;
  Allocator staging(const Allocator &host) override;
  Result<std::unique_ptr<Stream>>
  createStream(std::span<const format::Entry *const> entries,
               const StreamOptions &options) override;
  Status write(void *to, const void *from, size_t bytes) override;
  Status read(void *to, const void *from, size_t bytes) override;
  Status clear(void *at, size_t bytes) override;

  const Driver &driver() const { return *table; }
  const CodeModule &code() const { return *module; }
  const format::Program &program() const { return *loaded; }
  /// Of matrix products; null if there is none, or nothing for it to do.
  Library *productLibrary() const { return products.library.get(); }
  /// Makes the device that of the calling thread's calls.
  Status activate() const;
  Status check(Error error, std::string_view doing) const {
    return cuda::check(*table, error, doing);
  }

private:
  CudaDevice(const Driver &driver, int ordinal, std::string label)
      : table(&driver), number(ordinal), label(std::move(label)) {}

  Status retain(int &major, int &minor);
  Status createTransfers();
  Status writePieces(Address to, const std::byte *from, size_t bytes);

  const Driver *table;
  int number;
  std::string label;
  DeviceHandle device = 0;
  ContextHandle context = nullptr;
  std::optional<CodeModule> module;
  const format::Program *loaded = nullptr;
  OpenedLibrary products;

  std::mutex transfers; ///< one at a time
  StreamHandle stream = nullptr;
  PinnedMemory pieces[2];
  EventHandle copied[2] = {}; ///< the last copy from each piece is done
};

inline Address addressOf(const void *address) {
  return reinterpret_cast<Address>(address);
}

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_CUDA_CUDADEVICE_H
