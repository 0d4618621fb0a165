#include "runtime/data/images/Formats.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>

#include <jerror.h>
#include <jpeglib.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

namespace {

/// A decoder of libjpeg, whose errors come back by longjmp: whoever sets
/// `place` has no objects to destroy below it.
struct Decoder {
  jpeg_decompress_struct info = {};
  jpeg_error_mgr errors = {};
  std::jmp_buf place;
  bool isCut = false; ///< the library made up pixels that the file lacks

  Decoder();
  ~Decoder() { jpeg_destroy_decompress(&info); }
  Status fail() const;
};

} // namespace

static Decoder &decoderOf(j_common_ptr info) {
  return *static_cast<Decoder *>(info->client_data);
}

/// Warnings have negative levels; most are of files that others read as well.
static void noteWarning(j_common_ptr info, int level) {
  int code = info->err->msg_code;
  if (level < 0 && (code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER))
    decoderOf(info).isCut = true;
}

Decoder::Decoder() {
  info.err = jpeg_std_error(&errors);
  info.client_data = this;
  errors.error_exit = [](j_common_ptr failed) {
    std::longjmp(decoderOf(failed).place, 1);
  };
  errors.emit_message = noteWarning;
  errors.output_message = [](j_common_ptr) {};
}

Status Decoder::fail() const {
  char text[JMSG_LENGTH_MAX];
  auto *common = reinterpret_cast<j_common_ptr>(
      const_cast<jpeg_decompress_struct *>(&info));
  errors.format_message(common, text);
  return makeError(Code::BadData, "its JPEG is damaged: ", text);
}

/// False where the library fails, as it may in everything below.
static bool readHeader(Decoder &decoder, std::span<const std::byte> file) {
  if (setjmp(decoder.place))
    return false;
  jpeg_create_decompress(&decoder.info);
  jpeg_mem_src(&decoder.info, reinterpret_cast<const uint8_t *>(file.data()),
               file.size());
  jpeg_read_header(&decoder.info, TRUE);
  return true;
}

/// The library has no colours of the four inks; as photographs have them, they
/// are inverted.
static void convertInks(uint8_t *row, int count, bool isInverted) {
  for (uint8_t *pixel = row; pixel != row + size_t(count) * 4; pixel += 4) {
    uint8_t flip = isInverted ? 0 : 255;
    int black = pixel[3] ^ flip;
    for (int c = 0; c < 3; ++c)
      pixel[c] = uint8_t(((pixel[c] ^ flip) * black + 127) / 255);
  }
}

/// What stands beside the region is decoded along: chroma between two of its
/// samples depends on both.
static constexpr int kMargin = 16;

/// `row` has room for a row of the image and its margins.
static bool readRows(Decoder &decoder, int denominator, const Region &region,
                     uint8_t *row, Image &image) {
  if (setjmp(decoder.place))
    return false;
  jpeg_decompress_struct &info = decoder.info;
  bool hasInks = info.num_components == 4;
  info.out_color_space = hasInks ? JCS_CMYK : JCS_EXT_RGBX;
  info.dct_method = JDCT_ISLOW;
  info.scale_num = 1;
  info.scale_denom = unsigned(denominator);
  jpeg_start_decompress(&info);
  JDIMENSION left = std::max(0, region.left - kMargin);
  JDIMENSION width =
      std::min<JDIMENSION>(region.left + region.size.width + kMargin,
                           info.output_width) -
      left;
  jpeg_crop_scanline(&info, &left, &width);
  int top = std::max(0, region.top - kMargin);
  if (top > 0)
    jpeg_skip_scanlines(&info, JDIMENSION(top));
  for (int y = top; y < region.top + region.size.height; ++y) {
    jpeg_read_scanlines(&info, &row, 1);
    if (y < region.top)
      continue;
    uint8_t *to = image.row(y - region.top);
    std::copy_n(row + size_t(region.left - int(left)) * Image::kPixelBytes,
                image.rowBytes(), to);
    if (hasInks)
      convertInks(to, region.size.width, info.saw_Adobe_marker);
  }
  return true;
}

static bool begins(std::span<const std::byte> file) {
  return file.size() > 2 && file[0] == std::byte(0xff) &&
         file[1] == std::byte(0xd8);
}

static Result<Size> readJpegSize(std::span<const std::byte> file) {
  Decoder decoder;
  if (!readHeader(decoder, file))
    return decoder.fail();
  return Size{int(decoder.info.image_width), int(decoder.info.image_height)};
}

static Status decodeScaledJpeg(std::span<const std::byte> file, int denominator,
                               const Region &region, Image &image) {
  Decoder decoder;
  if (!readHeader(decoder, file))
    return decoder.fail();
  std::vector<uint8_t> row(size_t(decoder.info.image_width) *
                           Image::kPixelBytes);
  if (!readRows(decoder, denominator, region, row.data(), image))
    return decoder.fail();
  if (decoder.isCut)
    return Status(Code::BadData, "its JPEG is damaged or cut off");
  return Status();
}

static Status decodeJpeg(std::span<const std::byte> file, const Region &region,
                         Image &image) {
  return decodeScaledJpeg(file, /*denominator=*/1, region, image);
}

const Format images::kJpeg = {begins, readJpegSize, decodeJpeg,
                              decodeScaledJpeg};
