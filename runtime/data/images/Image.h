//===- Image.h - Pixels of compressed files ---------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_IMAGES_IMAGE_H
#define TCC_RUNTIME_DATA_IMAGES_IMAGE_H

#include "runtime/base/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tcc::runtime::images {

struct Size {
  int width = 0, height = 0;
  bool operator==(const Size &) const = default;
};

/// A rectangle of pixels; it may reach beyond an image.
struct Region {
  int left = 0, top = 0;
  Size size;
  bool operator==(const Region &) const = default;
};

/// Rows of pixels from the top, each red, green, blue and a byte that says
/// nothing.
struct Image {
  static constexpr int kPixelBytes = 4;

  Size size;
  std::vector<uint8_t> bytes;

  /// Makes room, and for a pixel more, which may be read; what is there already
  /// may be anything.
  void resize(Size to) {
    size = to;
    bytes.resize(rowBytes() * size_t(to.height) + kPixelBytes);
  }
  size_t pixelCount() const { return size_t(size.width) * size_t(size.height); }
  size_t rowBytes() const { return size_t(size.width) * kPixelBytes; }
  uint8_t *row(int number) { return bytes.data() + rowBytes() * number; }
  const uint8_t *row(int number) const {
    return bytes.data() + rowBytes() * number;
  }
};

/// More pixels are not decoded: a few bytes can claim any number of them.
constexpr int64_t kMostPixels = int64_t(1) << 27;

/// Code::BadData where that is no pixel, or more than kMostPixels; `what` has
/// it, for the error.
Status checkSize(Size size, const char *what);

/// The size that the bytes of a JPEG, PNG or WebP file claim. Code::BadData
/// where they are none of these, or claim no pixel or more than kMostPixels.
Result<Size> readSize(std::span<const std::byte> file);

/// Whether `decodeScaled` takes it.
bool canScale(std::span<const std::byte> file);

/// The size of an image at one part in `denominator`.
inline Size scaledSize(Size size, int denominator) {
  return {(size.width + denominator - 1) / denominator,
          (size.height + denominator - 1) / denominator};
}

/// Decodes a region of a JPEG at one part in 2, 4 or 8 of its size, in less
/// time than the whole: each pixel is the mean of as many, about.
Status decodeScaled(std::span<const std::byte> file, int denominator,
                    const Region &region, Image &image);

/// Decodes a region of such a file, inside it: the same pixels as of the whole.
/// Grey becomes red, green and blue; what is transparent gets its colours.
/// Code::BadData, of which the image says nothing, where the file is damaged.
Status decode(std::span<const std::byte> file, const Region &region,
              Image &image);

} // namespace tcc::runtime::images

#endif // TCC_RUNTIME_DATA_IMAGES_IMAGE_H
