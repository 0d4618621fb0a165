#include "runtime/data/images/Formats.h"

#include <algorithm>
#include <string_view>

#include <webp/decode.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

static const uint8_t *bytesOf(std::span<const std::byte> file) {
  return reinterpret_cast<const uint8_t *>(file.data());
}

static bool begins(std::span<const std::byte> file) {
  std::string_view text(reinterpret_cast<const char *>(file.data()),
                        std::min<size_t>(file.size(), 12));
  return text.starts_with("RIFF") && text.ends_with("WEBP");
}

static Result<Size> readWebpSize(std::span<const std::byte> file) {
  Size size;
  if (!WebPGetInfo(bytesOf(file), file.size(), &size.width, &size.height))
    return Status(Code::BadData, "its WebP is damaged");
  return size;
}

/// Cropping by the library begins at even pixels only: it decodes all.
static Status decodeWebp(std::span<const std::byte> file, const Region &region,
                         Image &image) {
  auto size = readWebpSize(file);
  if (!size.ok())
    return size.takeStatus();
  Image whole;
  whole.resize(*size);
  if (!WebPDecodeRGBAInto(bytesOf(file), file.size(), whole.bytes.data(),
                          whole.rowBytes() * size_t(whole.size.height),
                          int(whole.rowBytes())))
    return Status(Code::BadData, "its WebP is damaged or cut off");
  copyRegion(whole.bytes.data(), whole.rowBytes(), region, image);
  return Status();
}

const Format images::kWebp = {begins, readWebpSize, decodeWebp, nullptr};
