//===- MappedFile.h - A file read through mmap ------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_BASE_MAPPEDFILE_H
#define TCC_RUNTIME_BASE_MAPPEDFILE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <span>

namespace tcc::runtime {

/// Read-only; unmapped when destroyed.
class MappedFile {
public:
  MappedFile() = default;
  MappedFile(MappedFile &&other) noexcept { *this = std::move(other); }
  MappedFile &operator=(MappedFile &&other) noexcept {
    std::swap(address, other.address);
    std::swap(size, other.size);
    return *this;
  }
  ~MappedFile();

  static Result<MappedFile> open(const std::string &path);

  std::span<const std::byte> bytes() const { return {address, size}; }

private:
  const std::byte *address = nullptr;
  size_t size = 0;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_BASE_MAPPEDFILE_H
