#include "runtime/data/images/Image.h"

#include "runtime/data/images/Formats.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

static const Format *findFormat(std::span<const std::byte> file) {
  for (const Format *format : {&kJpeg, &kPng, &kWebp})
    if (format->begins(file))
      return format;
  return nullptr;
}

Status images::checkSize(Size size, const char *what) {
  if (size.width > 0 && size.height > 0 &&
      int64_t(size.width) * size.height <= kMostPixels)
    return Status();
  return makeError(Code::BadData, what, " ", size.width, "x", size.height,
                   " pixels, expected 1 to ", kMostPixels);
}

Result<Size> images::readSize(std::span<const std::byte> file) {
  const Format *format = findFormat(file);
  if (!format)
    return Status(Code::BadData, "it is no JPEG, PNG or WebP image");
  auto size = format->readSize(file);
  if (!size.ok())
    return size.takeStatus();
  if (Status status = checkSize(*size, "it claims"); !status.ok())
    return status;
  return size;
}

Status images::decode(std::span<const std::byte> file, const Region &region,
                      Image &image) {
  image.resize(region.size);
  return findFormat(file)->decode(file, region, image);
}

bool images::canScale(std::span<const std::byte> file) {
  return findFormat(file)->decodeScaled != nullptr;
}

Status images::decodeScaled(std::span<const std::byte> file, int denominator,
                            const Region &region, Image &image) {
  image.resize(region.size);
  return findFormat(file)->decodeScaled(file, denominator, region, image);
}

void images::copyRegion(const uint8_t *pixels, size_t stride,
                        const Region &region, Image &image) {
  for (int y = 0; y < region.size.height; ++y)
    std::copy_n(pixels + size_t(region.top + y) * stride +
                    size_t(region.left) * Image::kPixelBytes,
                image.rowBytes(), image.row(y));
}
