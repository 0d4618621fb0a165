//===- Image.h - Maps the code of a package ---------------------*- C++ -*-===//
//
// Code is an ELF shared object with relative relocations only. We map it
// ourselves: its pages are filled and relocated while writable, then become
// read-only or executable, and are never both writable and executable.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_PACKAGE_IMAGE_H
#define TCC_RUNTIME_PACKAGE_IMAGE_H

#include "runtime/base/Status.h"
#include "runtime/package/Format.h"

#include <cstddef>
#include <span>
#include <vector>

namespace tcc::runtime {

/// Mapped code; unmapped when destroyed. Immutable; may be shared by threads.
class CodeImage {
public:
  /// `bytes` are copied. They are untrusted: every offset is checked.
  static Result<CodeImage> map(std::span<const std::byte> bytes);

  CodeImage(CodeImage &&other) noexcept { *this = std::move(other); }
  CodeImage &operator=(CodeImage &&other) noexcept;
  ~CodeImage();

  /// The kernel at an offset from the image's first byte; null unless that lies
  /// in an executable segment.
  format::KernelFunction kernelAt(uint64_t offset) const;

private:
  struct Range {
    uint64_t begin, end;
  };

  CodeImage() = default;

  std::byte *base = nullptr;
  size_t size = 0;
  std::vector<Range> executable;
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_PACKAGE_IMAGE_H
