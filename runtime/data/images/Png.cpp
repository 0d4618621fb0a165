#include "runtime/data/images/Formats.h"

#include <algorithm>
#include <csetjmp>

#include <png.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

namespace {

/// A decoder of libpng, whose errors come back by longjmp: whoever sets its
/// place has no objects to destroy below it.
struct Decoder {
  explicit Decoder(std::span<const std::byte> file);
  ~Decoder() { png_destroy_read_struct(&png, &info, nullptr); }
  Status fail() const {
    return makeError(Code::BadData, "its PNG is damaged: ", why);
  }

  png_structp png = nullptr;
  png_infop info = nullptr;
  std::span<const std::byte> rest;
  std::string why = "there is no memory for it";
};

} // namespace

/// The text is copied before the jump leaves.
[[noreturn]] static void jump(png_structp png, png_const_charp text) {
  static_cast<Decoder *>(png_get_error_ptr(png))->why = text;
  png_longjmp(png, 1);
}

static void give(png_structp png, png_bytep to, size_t size) {
  auto &rest = static_cast<Decoder *>(png_get_io_ptr(png))->rest;
  if (size > rest.size())
    png_error(png, "it is cut off");
  std::copy_n(reinterpret_cast<const uint8_t *>(rest.data()), size, to);
  rest = rest.subspan(size);
}

Decoder::Decoder(std::span<const std::byte> file) : rest(file) {
  auto ignore = [](png_structp, png_const_charp) {};
  png = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, jump, ignore);
  info = png ? png_create_info_struct(png) : nullptr;
  if (info)
    png_set_read_fn(png, this, give);
}

static bool readHeader(Decoder &decoder) {
  if (!decoder.info || setjmp(png_jmpbuf(decoder.png)))
    return false;
  png_read_info(decoder.png, decoder.info);
  return true;
}

/// All kinds become 8 bits of red, green, blue and one more.
static bool beginRows(Decoder &decoder) {
  if (setjmp(png_jmpbuf(decoder.png)))
    return false;
  png_set_expand(decoder.png);
  png_set_strip_16(decoder.png);
  png_set_gray_to_rgb(decoder.png);
  png_set_add_alpha(decoder.png, 255, PNG_FILLER_AFTER);
  png_set_interlace_handling(decoder.png);
  png_read_update_info(decoder.png, decoder.info);
  return true;
}

static bool readRows(Decoder &decoder, png_bytepp rows) {
  if (setjmp(png_jmpbuf(decoder.png)))
    return false;
  png_read_image(decoder.png, rows);
  return true;
}

static bool begins(std::span<const std::byte> file) {
  constexpr size_t kBytes = 8;
  return file.size() >= kBytes &&
         png_sig_cmp(reinterpret_cast<png_const_bytep>(file.data()), 0,
                     kBytes) == 0;
}

static Size sizeOf(const Decoder &decoder) {
  return {int(png_get_image_width(decoder.png, decoder.info)),
          int(png_get_image_height(decoder.png, decoder.info))};
}

static Result<Size> readPngSize(std::span<const std::byte> file) {
  Decoder decoder(file);
  if (!readHeader(decoder))
    return decoder.fail();
  return sizeOf(decoder);
}

static Status decodePng(std::span<const std::byte> file, const Region &region,
                        Image &image) {
  Decoder decoder(file);
  if (!readHeader(decoder) || !beginRows(decoder))
    return decoder.fail();
  Image whole;
  whole.resize(sizeOf(decoder));
  std::vector<png_bytep> rows;
  for (int y = 0; y < whole.size.height; ++y)
    rows.push_back(whole.row(y));
  if (!readRows(decoder, rows.data()))
    return decoder.fail();
  copyRegion(whole.bytes.data(), whole.rowBytes(), region, image);
  return Status();
}

const Format images::kPng = {begins, readPngSize, decodePng, nullptr};
