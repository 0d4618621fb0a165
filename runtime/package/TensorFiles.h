//===- TensorFiles.h - Tensors of one file or several -----------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_TENSORFILES_H
#define TCC_RUNTIME_PACKAGE_TENSORFILES_H

#include "runtime/package/PyTorchFile.h"
#include "runtime/package/Safetensors.h"

#include <variant>

namespace tcc::runtime {

/// The tensors of a safetensors file, of one that torch.save wrote, or of those
/// that an index lists, NAME.index.json as Hugging Face's libraries write it:
/// an object whose "weight_map" has the file of each tensor, in the folder of
/// the index.
class TensorFiles {
public:
  /// Code::BadData where the index is damaged, names files outside its folder,
  /// or a file has not a tensor that it lists.
  static Result<TensorFiles> open(const std::string &path);

  /// Sorted by name.
  const std::vector<StoredTensor> &tensors() const { return entries; }

private:
  Status readIndex(const std::string &path);
  /// Opens a file, and gives its tensors.
  Result<std::span<const StoredTensor>> add(const std::string &path);

  std::vector<std::variant<SafetensorsFile, PyTorchFile>> files;
  std::vector<StoredTensor> entries;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_TENSORFILES_H
