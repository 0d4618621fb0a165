//===- Formats.h - What each library decodes --------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_FORMATS_H
#define TCC_RUNTIME_DATA_IMAGES_FORMATS_H

#include "runtime/data/images/Image.h"

namespace tcc::runtime::images {

/// One format; see Image.h for what its functions promise.
struct Format {
  bool (*begins)(std::span<const std::byte> file);
  Result<Size> (*readSize)(std::span<const std::byte> file);
  Status (*decode)(std::span<const std::byte> file, const Region &region,
                   Image &image);
  /// The region is of the image at one part in `denominator`, 2, 4 or 8, of its
  /// size, rounded up; null where the library decodes only whole ones.
  Status (*decodeScaled)(std::span<const std::byte> file, int denominator,
                         const Region &region, Image &image);
};

extern const Format kJpeg, kPng, kWebp;

/// Copies a region of rows of pixels that lie `stride` bytes apart.
void copyRegion(const uint8_t *pixels, size_t stride, const Region &region,
                Image &image);

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_FORMATS_H
