//===- Reader.h - Opens and verifies a package ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_PACKAGE_READER_H
#define TCC_RUNTIME_PACKAGE_READER_H

#include "runtime/base/Memory.h"
#include "runtime/package/Format.h"
#include "runtime/package/Program_generated.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tcc::runtime {

struct PackageOptions {
  /// Check every tensor of the weights section, read without the mapping.
  bool verifyWeights = true;
};

/// An open package: the program verified and in memory, the weights mapped.
/// Immutable; may be shared by threads.
class Package {
public:
  static Result<std::shared_ptr<const Package>>
  open(const std::string &path, const PackageOptions &options = {});
  ~Package();
  Package(const Package &) = delete;
  Package &operator=(const Package &) = delete;

  const std::string &path() const { return name; }
  const format::FileHeader &header() const { return fileHeader; }
  std::span<const format::SectionEntry> sections() const { return table; }
  const format::Program &program() const {
    return *format::GetProgram(programBytes.data());
  }

  /// Whether the bytes of a const tensor are in the package.
  bool hasWeight(const format::ConstTensor &tensor) const {
    return weightsSection && tensor.digest();
  }
  /// Requires hasWeight.
  std::span<const std::byte> weight(const format::ConstTensor &tensor) const;
  /// Gives back the memory of weights that were read; those that are read again
  /// come from the system's cache of the file.
  void releaseWeights() const;

  /// A private copy of a section, with its digest checked.
  Result<Memory> readSection(size_t index) const;

private:
  Package() = default;

  Status openFile(const std::string &path);
  Status readHeader();
  Status readTable();
  Status checkSection(size_t index, uint64_t fileSize) const;
  Status readProgram();
  Status mapWeights();
  void adviseSparse(const format::ConstTensor &tensor) const;
  Status verifyWeights() const;
  Status readAt(uint64_t offset, std::span<std::byte> bytes) const;
  Status malformed(const std::string &what) const;

  std::string name;
  int file = -1;
  uint64_t size = 0;
  format::FileHeader fileHeader = {};
  std::vector<format::SectionEntry> table;
  Memory programBytes;
  const format::SectionEntry *weightsSection = nullptr;
  std::byte *mapping = nullptr; ///< of the weights section
};

/// A value of the model's metadata; null if it has no such key.
const char *findMetadata(const format::Program &program, std::string_view key);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_READER_H
