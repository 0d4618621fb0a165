//===- CudnnLibrary.h - Convolutions by cuDNN -------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DEVICES_LIBRARIES_CUDNNLIBRARY_H
#define TCC_RUNTIME_DEVICES_LIBRARIES_CUDNNLIBRARY_H

#include "runtime/devices/cuda/Library.h"
#include "runtime/devices/libraries/Descriptor.h"

namespace tcc::runtime::cuda {

/// What plans are for: the device that the handle is of, or, without a handle,
/// one that is not there and that the properties describe.
struct DnnDevice {
  DnnHandle handle;
  DnnDescriptor properties;
};

/// cuDNN in the current context; `table` lives longer.
class CudnnLibrary {
public:
  static Result<std::unique_ptr<CudnnLibrary>> open(const Cudnn &table);
  /// For a device that is not there, whose properties are cuDNN's JSON: its
  /// plans cannot be enqueued.
  static Result<std::unique_ptr<CudnnLibrary>>
  openWithout(const Cudnn &table, std::string_view properties);
  ~CudnnLibrary();

  size_t version() const { return table.getVersion(); }
  /// As Library's.
  Result<std::unique_ptr<LibraryPlan>> plan(const LibraryWork &work,
                                            void *workspace, size_t bytes,
                                            size_t first = 0) const;

private:
  explicit CudnnLibrary(const Cudnn &table) : table(table) {}

  const Cudnn &table;
  DnnHandle handle = nullptr;
  std::optional<Descriptor> properties;
};

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_LIBRARIES_CUDNNLIBRARY_H
