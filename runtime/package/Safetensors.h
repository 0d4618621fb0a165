//===- Safetensors.h - Files of named tensors -------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_SAFETENSORS_H
#define TCC_RUNTIME_PACKAGE_SAFETENSORS_H

#include "runtime/base/MappedFile.h"
#include "runtime/base/Status.h"
#include "runtime/package/DType.h"

#include <string>
#include <vector>

namespace tcc::runtime {

/// A tensor inside a mapped file, its bytes may be unaligned; or one to write.
struct StoredTensor {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
};

/// A file: u64 header length, JSON header, data. All offsets are checked.
class SafetensorsFile {
public:
  static Result<SafetensorsFile> open(const std::string &path);

  /// Sorted by name.
  const std::vector<StoredTensor> &tensors() const { return entries; }
  /// The offset in the file of the bytes of one of its tensors.
  uint64_t offsetOf(const StoredTensor &tensor) const {
    return static_cast<uint64_t>(tensor.bytes.data() - file.bytes().data());
  }

private:
  MappedFile file;
  std::vector<StoredTensor> entries;
};

/// Where the bytes of each begin in a file with these tensors in their order,
/// and last how many it has; what `bytes` of them are is not asked.
std::vector<uint64_t> findOffsets(std::span<const StoredTensor> tensors);

/// How many tensors each of several files has, in their order: as many as
/// `mostBytes` of a file have room for, or one.
std::vector<size_t> divideIntoFiles(std::span<const StoredTensor> tensors,
                                    uint64_t mostBytes);

/// Writes tensors in their order, whole or not at all; their data begin at a
/// multiple of 64 bytes of the file.
Status writeSafetensors(const std::string &path,
                        std::span<const StoredTensor> tensors);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_SAFETENSORS_H
