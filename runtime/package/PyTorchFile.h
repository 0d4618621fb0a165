//===- PyTorchFile.h - Tensors that torch.save wrote ------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_PYTORCHFILE_H
#define TCC_RUNTIME_PACKAGE_PYTORCHFILE_H

#include "runtime/base/Memory.h"
#include "runtime/package/Pickle.h"
#include "runtime/package/Safetensors.h"
#include "runtime/package/ZipDirectory.h"

#include <optional>

namespace tcc::runtime {

/// The named tensors of a file of torch.save, since PyTorch 1.6 (.pt, .pth,
/// .bin): those of its dictionary, or of the one in it that is called
/// "state_dict", "model_state_dict" or "model". "module." and "_orig_mod.",
/// with which wrapped models begin all names, are left out. Nothing of the file
/// is called: what else it has is passed over.
class PyTorchFile {
public:
  static bool isOne(std::span<const std::byte> bytes) {
    return ZipDirectory::isOne(bytes);
  }
  /// Code::BadData where the file is damaged or has no such tensors.
  static Result<PyTorchFile> open(const std::string &path);

  /// Sorted by name.
  const std::vector<StoredTensor> &tensors() const { return entries; }

private:
  PyTorchFile(MappedFile file, ZipDirectory directory)
      : file(std::move(file)), directory(std::move(directory)) {}

  Status read();
  Status readByteOrder() const;
  const ZipDirectory::Entry *find(std::string_view name) const;
  Status addTensors(const PickleValue &dictionary);
  Result<StoredTensor> readTensor(const PickleValue &tensor);
  Result<std::span<const std::byte>> copy(const StoredTensor &tensor,
                                          std::span<const std::byte> storage,
                                          std::span<const int64_t> strides);

  MappedFile file;
  ZipDirectory directory;
  std::string folder; ///< of all entries, with its '/'
  std::vector<StoredTensor> entries;
  std::vector<Memory> copies; ///< of tensors that are not in row-major order
  uint64_t copiedBytes = 0;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_PYTORCHFILE_H
